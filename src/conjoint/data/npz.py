"""NumPy archives, read without pickle and without trusting the sizes they state."""

import lzma
import math
import warnings
import zipfile
import zlib
from collections.abc import Collection
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from conjoint.data.limits import MAX_BYTES
from conjoint.errors import InputError
from conjoint.graph.mapped import checked_text

_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
_BROKEN = (ValueError, EOFError, OSError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, RuntimeError)


def read_arrays(
    path: Path, *, skip: Collection[str] = (), max_bytes: int = MAX_BYTES
) -> dict[str, npt.NDArray[Any]]:
    """All arrays of an .npz except those in ``skip``. A pickled array is an error, whatever its name."""
    try:
        with zipfile.ZipFile(path) as archive, warnings.catch_warnings():
            # NumPy remarks on files saved by Python 2; they read well.
            warnings.filterwarnings("ignore", message="Reading `.npy`", category=UserWarning)
            members = [m for m in archive.infolist() if m.filename.removesuffix(".npy") not in skip]
            stated = sum(m.file_size for m in members)
            if stated > max_bytes:
                raise InputError(f"{path} unpacks to {stated:,} bytes, more than the limit of {max_bytes:,}")
            return {m.filename.removesuffix(".npy"): _read_member(archive, m, path) for m in members}
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; check the path") from None
    except (*_BROKEN, MemoryError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(
            f"{path} is not a whole .npz archive ({reason}); save it again with numpy.savez"
        ) from None


def read_array(content: bytes, path: Path) -> npt.NDArray[Any]:
    """The array of an .npy file; nothing larger than the file is ever allocated."""
    stream = BytesIO(content)
    try:
        shape, dtype, header = _header(stream)
        if dtype.hasobject or math.prod(shape) * dtype.itemsize + header != len(content):
            raise ValueError("its header and its size disagree")
        stream.seek(0)
        return checked_text(np.lib.format.read_array(stream, allow_pickle=False))
    except _BROKEN as error:
        raise InputError(
            f"{path} is not a whole array of numbers or text ({error}); restore it from a copy"
        ) from None


def _read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: Path) -> npt.NDArray[Any]:
    with archive.open(member) as stream:
        shape, dtype, header = _header(stream)
    if dtype.hasobject:
        raise InputError(
            f"{path}: array {member.filename!r} is a pickle, which can run code and is not opened; "
            "save it as numbers or fixed-width text"
        )
    # NumPy allocates what the header states before it reads, so the header must agree with the archive first.
    if math.prod(shape) * dtype.itemsize + header != member.file_size:
        raise InputError(
            f"{path}: array {member.filename!r} states shape {shape}, which its size contradicts"
        )
    with archive.open(member) as stream:
        return checked_text(np.lib.format.read_array(stream, allow_pickle=False))


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    version = np.lib.format.read_magic(stream)
    if version not in _HEADERS:
        raise ValueError(f"array format {version} is not supported")
    try:
        shape, _, dtype = _HEADERS[version](stream)
    except Exception as error:  # NumPy parses the header as Python text: a damaged one fails in many ways
        raise ValueError(f"a header cannot be read: {type(error).__name__}") from None
    if any(size < 0 for size in shape):
        raise ValueError(f"a header states shape {shape}")
    return shape, dtype, stream.tell()
