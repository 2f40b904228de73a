"""Plain .npy files: written piece by piece, read through a memory map whose pages can be given back."""

import hashlib
import math
import mmap
import os
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError, StorageError

Array = npt.NDArray[Any]
WINDOW_BYTES = 256 << 20
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


class NpyWriter:
    """Appends rows to an .npy file. NumPy pads its header, so the number of rows can be put in at the end."""

    def __init__(self, path: Path, dtype: npt.DTypeLike, columns: int | None = None) -> None:
        self.path, self.dtype, self.columns = path, np.dtype(dtype), columns
        self.rows = 0
        self._file: IO[bytes] = open(path, "wb")  # noqa: SIM115 (closed by __exit__)
        self._digest = hashlib.sha256()
        _write_header(self._file, self.dtype, self.shape)

    def append(self, values: Array) -> None:
        values = np.ascontiguousarray(values, dtype=self.dtype)
        self._file.write(values.data)
        self._digest.update(values.data)
        self.rows += len(values)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.rows,) if self.columns is None else (self.rows, self.columns)

    @property
    def sha256(self) -> str:
        """Of the values; type and shape stand in the manifest."""
        return self._digest.hexdigest()

    def __enter__(self) -> "NpyWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._file.seek(0)
            _write_header(self._file, self.dtype, self.shape)
        self._file.close()


def _write_header(file: IO[bytes], dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    described = {"descr": dtype.str, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, described)


def read_header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    """Shape, type and length of an .npy file's header; ValueError if it is damaged."""
    version = np.lib.format.read_magic(file)
    if version not in _HEADERS:
        raise ValueError(f"array format {version} is not supported")
    try:
        shape, _, dtype = _HEADERS[version](file)
    except Exception as error:  # NumPy parses the header as Python text: a damaged one fails in many ways
        raise ValueError(f"its header cannot be read: {type(error).__name__}") from None
    if any(size < 0 for size in shape):
        raise ValueError(f"its header states shape {shape}")
    return shape, dtype, file.tell()


class Mapped:
    """A memory map of a whole .npy file. `release` gives its pages back to the system, the values stay."""

    def __init__(self, path: Path, writable: bool = False) -> None:
        try:
            with open(path, "r+b" if writable else "rb") as file:
                shape, dtype, start = read_header(file)
                if dtype.hasobject or path.stat().st_size != start + dtype.itemsize * math.prod(shape):
                    raise ValueError("its size does not fit its header")
                access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
                self._map = mmap.mmap(file.fileno(), 0, access=access)
        except OSError as error:
            said = (error.strerror or str(error)).lower()
            raise InputError(f"{path}: cannot read it ({said}); ingest the graph again") from None
        except ValueError as error:
            raise InputError(f"{path}: truncated or damaged ({error}); ingest the graph again") from None
        count = math.prod(shape)
        self.values: Array = np.frombuffer(self._map, dtype, count, offset=start).reshape(shape)

    def release(self) -> None:
        """The process holds no page of it any more; what is still wanted comes back from the page cache."""
        if hasattr(self._map, "madvise"):
            self._map.madvise(mmap.MADV_DONTNEED)


def gather(values: Array, index: Array, release: Callable[[], None], window: int = WINDOW_BYTES) -> Array:
    """`values[index]` of a mapped array, holding at most `window` bytes of the file at a time.

    Rows that lie far apart bring in a page each, and the system maps neighbouring pages along with it: taken
    at once, a few per cent of the rows make most of the file resident.
    """
    if values.nbytes <= window:
        return values[index]
    out = np.empty((len(index), *values.shape[1:]), values.dtype)
    block = np.asarray(index) // max(1, window // (values.nbytes // len(values)))
    order = np.argsort(block, kind="stable")
    ends = np.flatnonzero(np.diff(block[order])) + 1
    for some in np.split(order, ends):
        out[some] = values[index[some]]
        release()
    return out


def create(path: Path, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Mapped:
    """A new array of zeros in a file, mapped for writing. The file takes its room on the disk at once."""
    with open(path, "wb") as file:
        _write_header(file, np.dtype(dtype), shape)
        size = math.prod(shape) * np.dtype(dtype).itemsize
        try:
            if size:
                # Reserved, because a full disk under a memory map ends the process instead of raising.
                os.posix_fallocate(file.fileno(), file.tell(), size)
        except OSError as error:
            said = (error.strerror or str(error)).lower()
            raise StorageError(f"{path}: no room for {size:,} bytes ({said}); name another folder") from None
    return Mapped(path, writable=True)


def checked_text(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array, unless it claims to be text and holds numbers that are no letters: Python fails on those."""
    if values.dtype.kind == "U" and values.dtype.itemsize and values.size:
        letters = np.dtype(np.uint32).newbyteorder(values.dtype.byteorder)
        codes = np.ascontiguousarray(values).reshape(-1).view(letters)
        if bool(((codes > 0x10FFFF) | ((codes >= 0xD800) & (codes < 0xE000))).any()):
            raise ValueError("its text holds numbers that are no letters")
    return values
