"""GraphML, parsed element by element with document types refused: nothing is expanded, fetched or run."""

import os
from pathlib import Path
from xml.parsers import expat

import polars as pl

from ..errors import InputError
from .from_tables import text_table
from .read_table import MAX_BYTES, read_bytes

ID, SOURCE, TARGET = "id", "source", "target"


class _Reader:
    """Collects nodes and edges as rows of text; ``data`` cells go under their key's name."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.text
        self.parser.StartDoctypeDeclHandler = self.doctype
        self.names: dict[str, str] = {}
        self.nodes: list[dict[str, str | None]] = []
        self.edges: list[dict[str, str | None]] = []
        self.rows: list[dict[str, str | None]] = []  # the elements that are open, innermost last
        self.key: str | None = None
        self.cell: list[str] = []
        self.seen_root = False

    def fail(self, reason: str) -> InputError:
        return InputError(f"{self.file} line {self.parser.CurrentLineNumber}: {reason}")

    def doctype(self, *_: object) -> None:
        raise self.fail("a document type (DTD) is not allowed, since entities can blow up; remove it")

    def attribute(self, found: dict[str, str], name: str, tag: str) -> str:
        if name not in found:
            raise self.fail(f"<{tag}> lacks {name}=")
        return found[name]

    def start(self, qualified: str, found: dict[str, str]) -> None:
        tag = qualified.rpartition(" ")[2]
        if not self.seen_root:
            if tag != "graphml":
                raise self.fail(f"the root is <{tag}>, not <graphml>")
            self.seen_root = True
        elif tag == "key":
            key = self.attribute(found, "id", tag)
            self.names[key] = found.get("attr.name", key)
        elif tag == "node":
            self.rows.append({ID: self.attribute(found, "id", tag) or None})
            self.nodes.append(self.rows[-1])
        elif tag == "edge":
            ends = {name: self.attribute(found, name, tag) or None for name in (SOURCE, TARGET)}
            self.rows.append(ends)
            self.edges.append(ends)
        elif tag == "data":
            self.key, self.cell = self.attribute(found, "key", tag), []
        elif tag == "hyperedge":
            raise self.fail("hyperedges are not supported; write them as edges")

    def text(self, piece: str) -> None:
        if self.key is not None:
            self.cell.append(piece)

    def end(self, qualified: str) -> None:
        tag = qualified.rpartition(" ")[2]
        if tag == "data" and self.key is not None:
            if self.rows:  # data of the graph itself is not used
                name = self.names.get(self.key, self.key)
                # A key may not overwrite the id that the element itself carries.
                name = f"{name}_" if name in (ID, SOURCE, TARGET) else name
                self.rows[-1][name] = "".join(self.cell) or None
            self.key = None
        elif tag in ("node", "edge"):
            self.rows.pop()


def read_graphml(
    path: str | os.PathLike[str], max_bytes: int = MAX_BYTES
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Edge table, node table (all text)."""
    file = Path(path)
    raw = read_bytes(file, max_bytes)
    reader = _Reader(file)
    try:
        reader.parser.Parse(raw, True)
    except expat.ExpatError as error:
        raise InputError(f"{file} line {error.lineno} is not XML ({expat.ErrorString(error.code)})") from None
    except InputError:
        raise
    except (LookupError, ValueError) as error:  # from Python's codecs, by the name in the XML declaration
        raise InputError(
            f"{file} is in an encoding that cannot be read ({error}); save it as UTF-8"
        ) from None
    if not reader.nodes or not reader.edges:
        raise InputError(
            f"{file} has {len(reader.nodes)} nodes and {len(reader.edges)} edges; both are needed"
        )
    return text_table(reader.edges, str(file)), text_table(reader.nodes, str(file))
