"""Where raw files are looked for: the folder the user names, then the user's cache."""

import os
from collections.abc import Sequence
from pathlib import Path

from conjoint.errors import InputError

VARIABLE = "CONJOINT_DATA"


def cache_folder() -> Path:
    """The user's cache of raw files; made only when something is downloaded."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "conjoint"


def named_folder(root: str | os.PathLike[str] | None) -> Path | None:
    """``root``, or else the folder in the environment variable CONJOINT_DATA, or None. It must exist."""
    named = root if root is not None else os.environ.get(VARIABLE) or None
    if named is None:
        return None
    folder = Path(named).expanduser()
    if not folder.is_dir():
        argument = "root" if root is not None else VARIABLE
        raise InputError(f"{argument}={str(folder)!r} is not a folder; name one that holds the raw files")
    return folder


def find_files(bases: Sequence[Path], layouts: Sequence[str], files: Sequence[str]) -> Path | None:
    """The first ``base/layout`` that holds all ``files``; a folder with only some of them is an error."""
    for base in bases:
        for layout in layouts:
            folder = base / layout
            missing = [name for name in files if not (folder / name).is_file()]
            if not missing:
                return folder
            if len(missing) < len(files):
                raise InputError(f"{folder} lacks {', '.join(missing)}; put the missing raw files there")
    return None
