"""Files that are the old ones or the new ones, never half of each; one process at a time in a folder."""

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from .errors import InputError, StorageError

try:
    import fcntl
except ImportError:  # Windows has no flock; two trainers in one folder are then the user's own care
    fcntl = None  # type: ignore[assignment]

TEMPORARY = ".tmp"
LOCK = ".lock"


@contextlib.contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Turn what the system says about a file into one line with a remedy."""
    try:
        yield
    except OSError as error:
        said = (error.strerror or str(error)).lower()
        raise StorageError(
            f"{path}: cannot write ({said}); what was saved is intact; make room or take another folder"
        ) from error


def write_atomically(path: Path, content: bytes | Iterable[bytes | memoryview]) -> None:
    """Write beside the target, flush to the disk, then swap. A crash or a full disk leaves the old file.

    Content that is large comes in pieces, so that it need not stand in memory twice.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}{TEMPORARY}")
    with storage_errors(path):
        try:
            with open(beside, "wb") as file:
                for piece in [content] if isinstance(content, bytes) else content:
                    file.write(piece)
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, path)
        except BaseException:
            with contextlib.suppress(OSError):
                beside.unlink()
            raise
        sync_folder(path.parent)


def append_line(path: Path, line: str) -> None:
    """Add one line. A line cut short by a full disk is trimmed when the run resumes."""
    content = line.encode() + b"\n"
    with storage_errors(path), open(path, "ab", buffering=0) as file:
        if file.write(content) != len(content):
            raise OSError(28, "No space left on device")


def sync_folder(path: Path) -> None:
    """Make a rename survive a power cut, where the system can do that for folders."""
    with contextlib.suppress(OSError):
        folder = os.open(path, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def sync_file(path: Path) -> None:
    with storage_errors(path), open(path, "rb") as file:
        os.fsync(file.fileno())


def remove_leftovers(folder: Path) -> None:
    """Half-written files of a process that was killed."""
    for leftover in folder.glob(f".*{TEMPORARY}"):
        with contextlib.suppress(OSError):
            leftover.unlink()


def read_file(path: Path, limit: int, what: str) -> bytes:
    """The bytes of a file that a user named, refused before reading when it cannot be what it should be."""
    try:
        if not path.is_file():
            raise InputError(f"{path}: no such file; {what} is missing, so this is not a complete run folder")
        size = path.stat().st_size
        if size > limit:
            raise InputError(
                f"{path}: {size} bytes are too many for {what} (at most {limit}); is it another file?"
            )
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot read it ({(error.strerror or str(error)).lower()})") from error


def read_text(path: Path, limit: int, what: str) -> str:
    try:
        return read_file(path, limit, what).decode()
    except UnicodeDecodeError:
        raise InputError(f"{path}: not text; {what} is damaged or another file") from None


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other processes out of a folder. The system drops the lock when its holder dies, in any way."""
    if fcntl is None:
        yield
        return
    with storage_errors(folder):
        handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(
                f"{folder}: another process trains there; wait for it or choose another --out"
            ) from None
        yield
    finally:
        os.close(handle)


def usual_mode(full: int) -> int:
    """The permissions that a new file (0o666) or folder (0o777) of this user gets."""
    umask = os.umask(0)
    os.umask(umask)
    return full & ~umask
