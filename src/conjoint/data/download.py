"""Fetch raw files of a benchmark into the user's cache, where there is a network.

The addresses are the ones PyG and OGB use. PyG's own ``download_url`` turns certificate checks off and never
times out, so the bytes come through urllib here; a known SHA-256 is checked before a file gets its name.
"""

import hashlib
import shutil
import urllib.error
import urllib.request
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from ..errors import InputError
from .read_table import MAX_BYTES
from .write import written_whole

TIMEOUT = 30.0
CHUNK = 2**20


def fetch(url: str, target: Path, sha256: str | None = None) -> None:
    """``url`` into ``target``: whole and checked, or not there at all."""
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT) as answer:
            target.parent.mkdir(parents=True, exist_ok=True)
            _store(answer, url, target, sha256)
    except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
        raise OfflineError(f"{url}: {getattr(error, 'reason', error)}") from None


def _store(answer: IO[bytes], url: str, target: Path, sha256: str | None) -> None:
    digest, size = hashlib.sha256(), 0
    with written_whole(target) as part, open(part, "wb") as file:
        while chunk := answer.read(CHUNK):
            size += len(chunk)
            if size > MAX_BYTES:
                raise InputError(f"{url} sends more than {MAX_BYTES:,} bytes; stopped")
            digest.update(chunk)
            file.write(chunk)
        if sha256 is not None and digest.hexdigest() != sha256:
            raise InputError(f"{url} did not send the known file (SHA-256 differs); nothing was kept")


def unpack(archive: Path, folder: Path, members: Mapping[str, str]) -> None:
    """Take the named ``members`` (inside -> below ``folder``) out of a zip; absent ones are left out."""
    with zipfile.ZipFile(archive) as held:
        for inside in members.keys() & set(held.namelist()):
            if held.getinfo(inside).file_size > MAX_BYTES:
                raise InputError(
                    f"{archive}: {inside} unpacks to more than {MAX_BYTES:,} bytes; not unpacked"
                )
            target = folder / members[inside]
            target.parent.mkdir(parents=True, exist_ok=True)
            with held.open(inside) as source, written_whole(target) as part, open(part, "wb") as file:
                shutil.copyfileobj(source, file)


class OfflineError(InputError):
    """The network did not answer; the caller says which file to put where."""
