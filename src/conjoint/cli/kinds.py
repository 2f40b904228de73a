"""Values in a TOML file may be of any kind; here each setting of the graph and the split says its own."""

from collections.abc import Mapping
from typing import Any

from ..errors import InputError

TEXT, TEXTS, YES_NO, WHOLE, NUMBER = "text", "text or a list of texts", "true or false", "whole", "a number"

KINDS: dict[str, dict[str, str]] = {
    "data": {
        **dict.fromkeys(("name", "root", "edges", "nodes", "folder", "features", "delimiter"), TEXT),
        **dict.fromkeys(("id", "source", "target", "weight", "label", "time", "split"), TEXT),
        **dict.fromkeys(("text", "categorical", "ignore"), TEXTS),
        **dict.fromkeys(("drop_unknown", "standardise", "header"), YES_NO),
        **dict.fromkeys(("seed", "max_bytes"), WHOLE),
    },
    "split": {
        "name": TEXT,
        "resplit": YES_NO,
        **dict.fromkeys(("seed", "train_per_class", "num_val", "num_test"), WHOLE),
        **dict.fromkeys(("train", "val", "train_until", "val_until"), NUMBER),
    },
    "model": {"name": TEXT},  # its settings are checked against the model's own
}


def check_kinds(section: str, values: Mapping[str, Any]) -> None:
    """Settings that are not listed are left to whoever takes them: unknown ones are refused there."""
    for name, value in values.items():
        kind = KINDS.get(section, {}).get(name)
        if kind is not None and not _is(value, kind):
            wanted = "a whole number" if kind == WHOLE else kind
            raise InputError(f"[{section}] {name} = {value!r}: expected {wanted}")


def _is(value: object, kind: str) -> bool:
    if kind == YES_NO:
        return isinstance(value, bool)
    if kind in (WHOLE, NUMBER):
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 2**63:
            return False
        return kind == NUMBER or isinstance(value, int)
    if kind == TEXTS and isinstance(value, list):
        return all(_is(item, TEXT) for item in value)
    return isinstance(value, str) and "\0" not in value
