"""Parts of an HTML page that needs nothing else: tables, plots as SVG, data for its script, its policy."""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any

STYLE = Path(__file__).with_name("page") / "style.css"  # of every page


def json_in_script(value: Any) -> str:
    """JSON that cannot end the script element it stands in, nor open a comment there."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def page(template: Path, scripts: Sequence[Path], **parts: str) -> str:
    """The page with the style and its scripts: only these run, and it connects to nowhere."""
    style, *read = (path.read_text(encoding="utf-8") for path in (STYLE, *scripts, template))
    script = "".join("(() => {\n" + text + "})();\n" for text in read[:-1])
    hashes = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script))
    policy = "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; ".format(*hashes)
    policy += "img-src data:; base-uri 'none'; form-action 'none'"
    return Template(read[-1]).substitute(policy=policy, style=style, script=script, **parts)


def scrolled(title: str, table: str) -> str:
    """A table under its title, which scrolls by itself where it is wide."""
    named = escape(title)
    region = f'<div class="scroll" tabindex="0" role="region" aria-label="{named}">'
    return f"<h3>{named}</h3>\n{region}{table}</div>"


def table_html(
    title: str, headers: Sequence[str], rows: Sequence[Sequence[object]], shades: bool = False
) -> str:
    """Words stand left, numbers right; with `shades`, whole numbers are darker the larger they are."""
    words = [any(not _is_number(row[k]) for row in rows) for k in range(len(headers))]
    largest = max((cell for row in rows for cell in row if type(cell) is int), default=0) if shades else 0

    def line(cells: Sequence[object], tag: str) -> str:
        made = []
        for cell, word in zip(cells, words, strict=True):
            shade = f"shade{round(5 * cell / max(1, largest))}" if largest and type(cell) is int else ""
            kind = "word" if word else shade
            marked = f'{tag} class="{kind}"' if kind else tag
            made.append(f"<{marked}>{escape(str(cell))}</{tag.split()[0]}>")
        return f"<tr>{''.join(made)}</tr>"

    head, body = line(headers, 'th scope="col"'), "\n".join(line(row, "td") for row in rows)
    return scrolled(title, f"<table><thead>{head}</thead><tbody>{body}</tbody></table>")


def _is_number(cell: object) -> bool:
    return str(cell).lstrip("+-−")[:1].isdigit() or cell in ("-", "")


def chart(title: str, x: str, lines: Mapping[str, Sequence[tuple[float, float]]], ideal: bool = False) -> str:
    """Lines as SVG; `ideal` draws the diagonal of a plot from 0 to 1."""
    every = [point for points in lines.values() for point in points] or [(0.0, 0.0)]
    left, right = (0.0, 1.0) if ideal else (min(a for a, _ in every), max(a for a, _ in every))
    top = 1.0 if ideal else max(b for _, b in every)

    def at(a: float, b: float) -> str:
        return f"{40 + 280 * (a - left) / ((right - left) or 1.0):.1f},{200 - 180 * b / (top or 1.0):.1f}"

    parts = [f'<polyline class="axis" fill="none" points="{at(left, top)} {at(left, 0)} {at(right, 0)}"/>']
    if ideal:
        parts.append(f'<polyline class="ideal" points="{at(0, 0)} {at(1, 1)}"/>')
    for k, (name, points) in enumerate(lines.items()):
        drawn = " ".join(at(a, b) for a, b in points)
        parts.append(f'<polyline class="line{k}" points="{drawn}"><title>{escape(name)}</title></polyline>')
        x_at = 45 + 95 * k
        parts.append(f'<polyline class="line{k}" points="{x_at},236 {x_at + 14},236"/>')
        parts.append(f'<text x="{x_at + 18}" y="240">{escape(name)}</text>')
    parts += [_text(38, 24, f"{top:.3g}", "end"), _text(38, 204, "0", "end")]
    parts += [_text(40, 216, f"{left:.3g}", "start"), _text(320, 216, f"{right:.3g}", "end")]
    return _figure(title, [*parts, _text(180, 216, x, "middle")])


def bars(title: str, x: str, counts: Mapping[str, int]) -> str:
    """Numbers by name as SVG, one bar each."""
    wide, largest = 290 / max(1, len(counts)), max(counts.values(), default=1)
    parts = []
    for k, (name, times) in enumerate(counts.items()):
        high = 160 * times / largest
        parts.append(
            f'<rect class="bar0" x="{40 + wide * k + 1:.1f}" y="{200 - high:.1f}" width="{wide - 2:.1f}" '
            f'height="{high:.1f}"><title>{escape(name)}: {times:,}</title></rect>'
        )
        if len(counts) <= 8 or k % 2 == 0:
            parts.append(_text(f"{40 + wide * (k + 0.5):.1f}", 214, name, "middle"))
    return _figure(title, [*parts, _text(36, 44, f"{largest:,}", "end"), _text(185, 234, x, "middle")])


def _text(x: float | str, y: int, words: str, anchor: str) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}">{escape(words)}</text>'


def _figure(title: str, parts: Sequence[str]) -> str:
    named = escape(title)
    svg = f'<svg viewBox="0 0 340 250" width="340" height="250" role="img" aria-label="{named}">'
    return f"<figure><figcaption>{named}</figcaption>{svg}{''.join(parts)}</svg></figure>"
