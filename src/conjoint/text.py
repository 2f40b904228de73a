"""Text from a user's file, made safe to show: a terminal or a picture displays it, never obeys it."""

import unicodedata

HIDDEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")  # controls, bidirectional marks, surrogates, line breaks


def clean(text: object) -> str:
    """The text with every character that a terminal would act upon written as its escape."""
    plain = str(text)
    if plain.isascii() and plain.isprintable():
        return plain
    return "".join(
        character.encode("unicode_escape").decode()
        if unicodedata.category(character) in HIDDEN
        else character
        for character in plain
    )


def shorten(text: object, limit: int) -> str:
    """Clean text of at most `limit` characters."""
    plain = clean(text)
    return plain if len(plain) <= limit else plain[: limit - 1] + "…"


def count(n: int, thing: str) -> str:
    """1 edge, 2 edges."""
    return f"{n} {thing}" if n == 1 else f"{n} {thing}s"


def file_name(text: object) -> str:
    """A name for a folder, from whatever a graph is called."""
    safe = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in str(text))
    return safe.strip(".-")[:60] or "graph"
