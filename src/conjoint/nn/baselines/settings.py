"""What the settings of every model have in common: they are checked where they are made."""

from dataclasses import dataclass, fields

from ...errors import InputError
from .. import checks


@dataclass(frozen=True)
class Settings:
    """Base of the frozen settings. A whole number counts something, so it is 1 or more, except a seed."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None and field.default is None:
                continue
            for kind in (bool, int, float, str):
                if field.type in (kind, kind | None) and not _is(value, kind):
                    raise InputError(f"{field.name}: {value!r}; expected a {_WORDS[kind]}")
            if field.name.endswith("seed"):
                if value < 0:
                    raise InputError(f"{field.name}: {value}; choose 0 or more")
            elif field.type in (int, int | None):
                if not value == field.default == 0:  # what is off by default may be off
                    checks.positive(**{field.name: value})
            elif field.name.endswith("dropout"):
                checks.share(**{field.name: value})


_WORDS = {bool: "choice of true or false", int: "whole number", float: "number", str: "word"}


def _is(value: object, kind: type) -> bool:
    if kind in (int, float):
        return isinstance(value, int if kind is int else (int, float)) and not isinstance(value, bool)
    return isinstance(value, kind)
