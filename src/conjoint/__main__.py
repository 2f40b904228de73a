"""`python -m conjoint` is the command `conjoint`."""

import sys

from .cli import main

sys.exit(main())
