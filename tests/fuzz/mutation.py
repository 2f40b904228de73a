"""Damage to bytes: blind, or inside a container that stays sound, so that it gets past the checksums."""

import gzip
import io
import json
import random
import re
import struct
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

Damage = Callable[[bytes, random.Random], bytes]

# Pieces that files break on: bounds of numbers, quotes, delimiters, markup, magic bytes, paths, formulas.
TOKENS = [
    *(b"", b",", b"\n", b"\r\n", b'"', b"\t", b";", b"\x00", b"\xff", b"'", b"#", b"|", b" "),
    *(b"-1", b"0", b"nan", b"inf", b"-inf", b"1e999", b"1e308", b"9" * 30, b"0x10", b"true", b"null", b"[]"),
    *(b"<!DOCTYPE a [", b"&amp;", b"]]>", b"<node/>", b"<script>", b"&#0;", b"<![CDATA["),
    *(b"PK\x03\x04", b"\x80\x04", b"\x1f\x8b", b"PAR1", b"\x93NUMPY\x01\x00", b"{'descr': '|O'"),
    *(b"../../etc/passwd", b"/etc/passwd", b"C:\\x", b"=1+1", b"\x1b[31m", b"\xc2\x9b", b"[[a]]", b"a.b=1"),
    *("é".encode(), "\u202e".encode(), "\ud800".encode(errors="surrogatepass")),
    *(b"a" * 5000, b"," * 1000, b"\n" * 3000, b"[" * 3000, b'{"a":' * 2000),
    *(struct.pack("<q", value) for value in (-1, 2**31, 2**63 - 1)),
    *(struct.pack("<i", value) for value in (-1, 2**31 - 1)),
]


def mutate(raw: bytes, chance: random.Random) -> bytes:
    """A few random cuts, copies, flips and insertions."""
    out = bytearray(raw)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 6))):
        at = chance.randrange(len(out) + 1)
        end = min(len(out), at + chance.randint(1, 20))
        choice = chance.randrange(8)
        if choice == 0:
            del out[at:end]
        elif choice == 1:
            out[at:at] = chance.choice(TOKENS)
        elif choice == 2:
            out[at:end] = chance.choice(TOKENS)
        elif choice == 3:
            out[at:at] = out[at:end] * chance.randint(1, 50)
        elif choice == 4 and at < len(out):
            out[at] = chance.randrange(256)
        elif choice == 5 and at < len(out):
            out[at] ^= 1 << chance.randrange(8)
        elif choice == 6:
            other = chance.randrange(len(out) + 1)
            out[at:end] = out[other : other + chance.randint(1, 40)]
        elif choice == 7 and chance.random() < 0.3:
            del out[at:]
    return bytes(out)


def in_place(raw: bytes, chance: random.Random) -> bytes:
    """Mostly flips and small numbers that keep the size, which is the first thing compared."""
    if chance.random() < 0.2:
        return mutate(raw, chance)
    out = bytearray(raw)
    for _ in range(chance.choice((1, 1, 2, 4))):
        at = chance.randrange(len(out)) if out else 0
        if chance.random() < 0.5 and out:
            out[at] ^= 1 << chance.randrange(8)
        elif len(out) >= at + 8:
            out[at : at + 8] = struct.pack("<q", chance.choice((-1, 0, 1, 5, 100, 2**40)))
    return bytes(out)


def in_zip(raw: bytes, chance: random.Random) -> bytes:
    """A sound archive with damaged members and member names."""
    if chance.random() < 0.25:
        return mutate(raw, chance)
    out = io.BytesIO()
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as old, zipfile.ZipFile(out, "w") as new:
            for name in dict.fromkeys(old.namelist()):
                if chance.random() < 0.03:
                    continue
                member = old.read(name)
                if chance.random() < 0.05:
                    name = chance.choice(("../escape.npy", "/tmp/escape.npy", "x.npy", "edges.npy", "y.npy"))
                new.writestr(name, mutate(member, chance) if chance.random() < 0.15 else member)
    except (zipfile.BadZipFile, OSError, ValueError, RuntimeError, NotImplementedError, EOFError, zlib.error):
        return mutate(raw, chance)
    return out.getvalue()


def in_gzip(raw: bytes, chance: random.Random) -> bytes:
    """Mostly damaged text in a sound envelope."""
    if chance.random() < 0.3:
        return mutate(raw, chance)
    try:
        text = gzip.decompress(raw[:100_000])
    except (OSError, EOFError, zlib.error):
        return mutate(raw, chance)
    return gzip.compress(mutate(text, chance), 1)


def in_json(raw: bytes, chance: random.Random) -> bytes:
    """Mostly sound JSON, line by line, with values of the wrong kind, doubled, or gone."""
    if chance.random() < 0.4:
        return mutate(raw, chance)
    lines = raw.split(b"\n")
    at = chance.randrange(len(lines))
    try:
        document = json.loads(lines[at])
        for _ in range(chance.randint(1, 3)):
            document = _replaced(document, chance)
        lines[at] = json.dumps(document).encode()
    except (ValueError, RecursionError):
        return mutate(raw, chance)
    return b"\n".join(lines)


def in_toml(raw: bytes, chance: random.Random) -> bytes:
    """Mostly sound TOML with a value of the wrong kind, a line too many or one gone."""
    if chance.random() < 0.3:
        return mutate(raw, chance)
    lines = raw.split(b"\n")
    for _ in range(chance.choice((1, 1, 2))):
        at = chance.randrange(len(lines))
        choice = chance.randrange(8)
        if choice == 0:
            lines.insert(chance.randrange(len(lines)), lines[at])
        elif choice == 1:
            del lines[at]
        else:
            name, equals, _ = lines[at].partition(b"=")
            lines[at] = name + equals + chance.choice(TOML_VALUES)
        lines = lines or [b""]
    return b"\n".join(lines)


TOML_VALUES = [
    *(
        b"1",
        b"0",
        b"-1",
        b"0.5",
        b"-0.5",
        b"1e300",
        b"nan",
        b"inf",
        b"true",
        b"99999999999999999999",
        b"1e-9",
    ),
    *(
        b'""',
        b'"a"',
        b'"gcn"',
        b'"cat-e-sc"',
        b'"../x"',
        b'"per-class"',
        b'"time"',
        b'"spectral:2"',
        b'"\\u001b[1m"',
    ),
    *(b"[]", b"[1]", b'["a", "b"]', b"[[1]]", b"{}", b"{a = 1}", b"1979-05-27", b"07:32:00"),
]


def in_xml(raw: bytes, chance: random.Random) -> bytes:
    """Mostly sound XML: an element doubled, gone or moved, or a name or text exchanged."""
    if chance.random() < 0.4:
        return mutate(raw, chance)
    pieces = re.split(rb"(<[^>]*>|[\"'][^\"']*[\"'])", raw)
    at = chance.randrange(len(pieces))
    choice = chance.randrange(5)
    if choice == 0:
        pieces.insert(chance.randrange(len(pieces)), pieces[at])
    elif choice == 1:
        del pieces[at]
    elif choice == 2:
        pieces[at] = mutate(pieces[at], chance)
    elif choice == 3:
        pieces[at] = re.sub(
            rb"\"[^\"]*\"", b'"' + chance.choice((b"", b"a", b"zz", b"1", b"d0")) + b'"', pieces[at], count=1
        )
    else:
        pieces[at] = (
            pieces[at] + b"<data key='d0'>" + chance.choice((b"", b"7", b"&lt;b&gt;", b"1e9")) + b"</data>"
        )
    return b"".join(pieces)


def in_safetensors(raw: bytes, chance: random.Random) -> bytes:
    """Damaged JSON in the header with its length stated rightly."""
    if chance.random() < 0.4 or len(raw) < 8:
        return mutate(raw, chance)
    size = int.from_bytes(raw[:8], "little")
    header = in_json(raw[8 : 8 + size], chance)
    return struct.pack("<Q", len(header)) + header + raw[8 + size :]


ODD: list[Any] = [
    *(None, True, -1, 0, 1, 2**70, 0.5, -1.5, 1e308, "", "a", "../x", "<script>", "\x1b[31m", [], {}),
    *([None], [[1]], {"a": 1}, [1, "a"], float("nan"), float("inf")),
]


def _replaced(value: Any, chance: random.Random) -> Any:
    """The document with one value, found by a random walk, replaced, removed or put elsewhere."""
    if isinstance(value, dict) and value and chance.random() < 0.9:
        key = chance.choice(list(value))
        out = dict(value)
        if chance.random() < 0.1:
            del out[key]
        elif chance.random() < 0.05:
            out[chance.choice(("", "x", "__class__", *map(str, ODD[:4])))] = out.pop(key)
        else:
            out[key] = _replaced(value[key], chance)
        return out
    if isinstance(value, list) and value and chance.random() < 0.8:
        at = chance.randrange(len(value))
        kept = value[:at] + value[at + 1 :]
        return (
            kept if chance.random() < 0.2 else [*value[:at], _replaced(value[at], chance), *value[at + 1 :]]
        )
    return chance.choice(ODD)
