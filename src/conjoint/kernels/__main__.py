"""`python -m conjoint.kernels` compiles the kernels beside this file, for an install that had no compiler."""

import sys

from .build import SOURCES, build

trouble = build(SOURCES.parent)
sys.exit(f"conjoint: the C kernels were not built: {trouble}" if trouble else None)
