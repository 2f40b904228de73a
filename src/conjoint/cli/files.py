"""Checks on files to be written, made before the work that fills them."""

import os
from pathlib import Path

from ..errors import InputError

TABLES = (".csv", ".tsv", ".parquet")
PICTURES = (".png", ".svg", ".pdf")


def must_be_writable(option: str, path: str, kinds: tuple[str, ...] = TABLES) -> None:
    """The ending is one that can be written, the folder is there and writable, and it is no folder itself."""
    target = Path(path)
    if target.suffix.lower() not in kinds:
        raise InputError(f"{option} {path}: the name must end in {', '.join(kinds[:-1])} or {kinds[-1]}")
    if target.is_dir():
        raise InputError(f"{option} {path}: is a folder; name a file")
    if not target.parent.is_dir():
        raise InputError(f"{option} {path}: no folder {target.parent}; make it first")
    if not os.access(target.parent, os.W_OK):
        raise InputError(f"{option} {path}: the folder is read-only; choose another")
