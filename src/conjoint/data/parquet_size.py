"""How many bytes a Parquet file unpacks to, read from its page headers before anything is unpacked.

A few kilobytes of compressed zeros may state gigabytes. The library that decodes the file trusts each page's
header, so the headers are what is summed here. (Thrift's compact protocol, the structures of parquet.thrift.)
"""

from collections.abc import Iterator
from typing import Any

_MAGIC = b"PAR1"
_DEEPEST = 32
_MOST_PAGES = 1_000_000
# Field numbers in parquet.thrift.
_ROWS, _ROW_GROUPS, _COLUMNS, _META, _GROUP_ROWS = 3, 4, 1, 3, 3
_PATH, _VALUES, _COMPRESSED_SIZE, _DATA_OFFSET, _DICTIONARY_OFFSET = 3, 5, 7, 9, 11
_PAGE_UNPACKED, _PAGE_PACKED, _DATA_PAGE, _DICTIONARY_PAGE, _DATA_PAGE_2 = 2, 3, 5, 7, 8


def unpacked_bytes(raw: bytes) -> int:
    """Sum of the unpacked sizes that the file's pages state; ValueError if the file is not whole."""
    if len(raw) < 12 or raw[:4] != _MAGIC or raw[-4:] != _MAGIC:
        raise ValueError("the magic bytes PAR1 are missing")
    start = len(raw) - 8 - int.from_bytes(raw[-8:-4], "little")
    if start < 4:
        raise ValueError("the footer is cut")
    footer, _ = _struct(raw, start)
    total = walked = rows = 0
    for group in _list(footer, _ROW_GROUPS):
        height = _count(group, _GROUP_ROWS)
        rows += height
        for column in _list(group, _COLUMNS):
            for unpacked in _pages(raw, column.get(_META), height):
                total += unpacked
                walked += 1
                if walked > _MOST_PAGES:  # a footer may point at the same pages over and over
                    raise ValueError("there are too many pages")
    if rows != _count(footer, _ROWS):
        raise ValueError("the numbers of rows do not add up")
    return total


def _count(struct: dict[int, Any], field: int) -> int:
    found = struct.get(field)
    if not isinstance(found, int) or found < 0:
        raise ValueError("a number of values is damaged")
    return found


def _list(struct: dict[int, Any], field: int) -> list[dict[int, Any]]:
    found = struct.get(field, [])
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise ValueError("the footer is damaged")
    return found


def _pages(raw: bytes, meta: Any, height: int) -> Iterator[int]:
    """The unpacked size of each page. The library reserves room for as many values as a page states, and ends
    the process where there is none, so no page may state more than its column, nor a column than its rows."""
    if not isinstance(meta, dict):
        raise ValueError("the footer is damaged")
    path, values = meta.get(_PATH), _count(meta, _VALUES)
    if isinstance(path, list) and len(path) == 1 and values != height:  # in lists there may be more
        raise ValueError("a column has another number of values than rows")
    offsets = [
        meta[f] for f in (_DICTIONARY_OFFSET, _DATA_OFFSET) if isinstance(meta.get(f), int) and meta[f] > 0
    ]
    size = meta.get(_COMPRESSED_SIZE)
    if not offsets or not isinstance(size, int):
        raise ValueError("the footer is damaged")
    at = min(offsets)
    end = at + size
    while at < min(end, len(raw)):
        header, at = _struct(raw, at)
        packed, unpacked = header.get(_PAGE_PACKED), header.get(_PAGE_UNPACKED)
        if not isinstance(packed, int) or not isinstance(unpacked, int) or packed < 0 or unpacked < 0:
            raise ValueError("a page header is damaged")
        for field, most in ((_DATA_PAGE, values), (_DATA_PAGE_2, values), (_DICTIONARY_PAGE, unpacked)):
            about = header.get(field)
            if about is not None and not (isinstance(about, dict) and _count(about, 1) <= most):
                raise ValueError("a page states more values than its column has")
        at += packed
        yield unpacked


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 70:
        byte = raw[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError("a number is too long")


def _signed(raw: bytes, at: int) -> tuple[int, int]:
    coded, at = _varint(raw, at)
    return (coded >> 1) ^ -(coded & 1), at


def _value(raw: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in (1, 2):
        return kind == 1, at
    if kind == 3:
        return raw[at], at + 1
    if kind in (4, 5, 6):
        return _signed(raw, at)
    if kind == 7:
        return None, at + 8
    if kind == 8:
        size, at = _varint(raw, at)
        return None, at + size  # names and statistics are not needed
    if kind in (9, 10):
        size, inner = raw[at] >> 4, raw[at] & 15
        at += 1
        if size == 15:
            size, at = _varint(raw, at)
        if size > len(raw):
            raise ValueError("a list is longer than the file")
        if inner in (1, 2):  # in a list a boolean takes a byte of its own
            return [], at + size
        items = []
        for _ in range(size):
            item, at = _value(raw, at, inner, depth + 1)
            items.append(item)
        return items, at
    if kind == 12:
        return _struct(raw, at, depth + 1)
    raise ValueError(f"a field has the unknown kind {kind}")


def _struct(raw: bytes, at: int, depth: int = 0) -> tuple[dict[int, Any], int]:
    if depth > _DEEPEST:
        raise ValueError("the structure is nested too deeply")
    fields: dict[int, Any] = {}
    number = 0
    try:
        while raw[at]:
            step, kind = raw[at] >> 4, raw[at] & 15
            at += 1
            number, at = (number + step, at) if step else _signed(raw, at)
            fields[number], at = _value(raw, at, kind, depth)
    except IndexError:
        raise ValueError("the file is cut") from None
    return fields, at + 1
