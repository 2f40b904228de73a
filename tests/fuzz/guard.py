"""What no file may make the program do: run code, reach the network, touch other files, hang or swell."""

import contextlib
import faulthandler
import os
import resource
import signal
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

# Events of Python's audit hooks, which C code raises too.
FORBIDDEN = (
    *("os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "subprocess.Popen"),
    *("pickle.find_class", "marshal.loads", "ctypes.dlopen", "code.__new__"),
    *("socket.connect", "socket.bind", "socket.getaddrinfo", "urllib.Request", "webbrowser.open"),
    *("os.remove", "os.rename", "os.rmdir", "os.symlink", "os.link", "os.chmod", "os.mkdir", "shutil.rmtree"),
)
LIBRARIES = tuple(
    {str(Path(p).resolve()) for p in (sys.prefix, sys.base_prefix, sysconfig.get_paths()["stdlib"])}
    | {str(Path(__file__).resolve().parents[2])}
)


class Violation(BaseException):
    """Not an Exception, so that no handler in the code under test can swallow it."""


_armed: Path | None = None
_hooked = False


@contextlib.contextmanager
def nothing_but(folder: Path) -> Iterator[None]:
    """Inside, only files in `folder` may be opened, and none of `FORBIDDEN` may happen outside of it."""
    global _armed, _hooked
    if not _hooked:
        sys.addaudithook(_look)  # a hook cannot be taken back, only disarmed
        _hooked = True
    _armed = folder.resolve()
    try:
        yield
    finally:
        _armed = None


def _look(event: str, arguments: tuple[Any, ...]) -> None:
    global _armed
    if _armed is None or (event != "open" and event not in FORBIDDEN):
        return
    folder = _armed
    if event in ("open", "os.remove", "os.mkdir", "os.rename"):
        path, mode = str(arguments[0]), arguments[1] if event == "open" else "w"
        if isinstance(arguments[0], int) or path.startswith(str(folder)) or path == os.devnull:
            return
        # Modules and their data are loaded late; reading them is no harm.
        if event == "open" and not set(str(mode or "r")) & set("wax+") and path.startswith(LIBRARIES):
            return
    if event == "marshal.loads" or (event == "code.__new__" and _importing()):
        return
    _armed = None  # whoever handles the violation may open files
    raise Violation(f"{event} {arguments!r:.300}")


def _importing() -> bool:
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


@contextlib.contextmanager
def no_longer_than(seconds: float) -> Iterator[None]:
    """Of processor time, so that a machine that is busy or asleep is no find.

    Interrupts Python code; for C code that does not come back, see `end_if_stuck`.
    """

    def late(number: int, frame: FrameType | None) -> None:
        raise Violation(f"still busy after {seconds} s")

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def end_if_stuck(seconds: float) -> None:
    """End the process with a traceback unless this is called again within so many seconds; 0: no more."""
    faulthandler.cancel_dump_traceback_later()
    if seconds:
        faulthandler.dump_traceback_later(seconds, exit=True, file=2)  # pytest may hold sys.stderr


@contextlib.contextmanager
def no_more_than(gibibytes: float) -> Iterator[None]:
    """A reader that asks for much more than the files hold fails here instead of taking the machine down."""
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (held + int(gibibytes * 2**30), before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """In memory where that is possible: a million files are hard on a disk."""
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as folder:
        yield Path(folder)
