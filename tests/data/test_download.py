"""Downloads: whole and checked, or not there."""

import io
import zipfile
from pathlib import Path

import pytest

from conjoint.data import benchmarks
from conjoint.errors import InputError


def test_a_download_is_whole_and_checked_or_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(benchmarks.urllib.request, "urlopen", lambda url, timeout: io.BytesIO(b"hello"))
    target = tmp_path / "deep" / "file"
    with pytest.raises(InputError, match="did not send the known file"):
        benchmarks.fetch("https://example.org/file", target, "0" * 64)
    assert list(target.parent.iterdir()) == []
    known = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"  # sha256 of hello
    benchmarks.fetch("https://example.org/file", target, known)
    assert target.read_bytes() == b"hello" and len(list(target.parent.iterdir())) == 1


def test_an_archive_gives_only_the_members_asked_for(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("arxiv/raw/edge.csv.gz", b"edges")
        archive.writestr("../escape", b"no")
    members = {"arxiv/raw/edge.csv.gz": "raw/edge.csv.gz", "arxiv/raw/absent": "raw/absent"}
    benchmarks.unpack(tmp_path / "a.zip", tmp_path / "out", members)
    assert [p.name for p in (tmp_path / "out").rglob("*") if p.is_file()] == ["edge.csv.gz"]
    assert not (tmp_path / "escape").exists()
