"""The tables of the docs, from result files alone: `python -m benchmarks.table results/benchmarks/20*.json`.

One column per file: a ratio always comes from one run, and several runs show how far the speed wanders.
`python -m benchmarks.table results/benchmarks/layers.jsonl` is that of `benchmarks.layers`.
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Row = tuple[str, str, str]


def table(*runs: dict[str, Any]) -> str:
    """Markdown: what was measured, the value of each run, the bound it is held to."""
    columns = [{what: (value, bound) for what, value, bound in _rows(found)} for found in runs]
    names = list(dict.fromkeys(what for column in columns for what in column))
    head = ["what", *(f"run {place}" for place in range(1, len(runs) + 1)), "bound"]
    lines = [head, ["---"] * len(head)]
    for what in names:
        bound = next(column[what][1] for column in columns if what in column)
        lines.append([what, *(column.get(what, ("", ""))[0] for column in columns), bound])
    about = [f"- run {place}: {_about(found['machine'])}" for place, found in enumerate(runs, start=1)]
    return "\n".join([*about, "", *("| " + " | ".join(line) + " |" for line in lines)])


def _about(machine: dict[str, Any]) -> str:
    versions = f"torch {machine['torch']}, PyG {machine['torch_geometric']}"
    when = machine["date"][:16].replace("T", " ")
    load = f"load before {machine['load_before']:.1f}"
    return f"{when}, {machine['cpu']}, {machine['threads']} threads, {versions}, {load}"


def _rows(found: dict[str, Any]) -> list[Row]:
    rows: list[Row] = []
    if "steps" in found:
        rows += _steps(found["steps"])
    if "memory" in found:
        rows += _memory(found["memory"])
    if "growth" in found:
        rows += [
            ("time against entries, exponent", f"{found['growth']['time_exponent']:.2f}", "<= 1.05"),
            ("memory against entries, exponent", f"{found['growth']['memory_exponent']:.2f}", "<= 1.05"),
        ]
    if "start" in found:
        rows.append(("Cora, first step in a fresh process", f"{found['start']['seconds']:.2f} s", "<= 0.5 s"))
    if "training" in found:
        whole = found["training"]
        shown = f"{whole['conjoint']:.1f} s (plain PyG script {whole['pyg']:.1f} s)"
        rows.append((f"Cora, {whole['epochs']} epochs, whole process", shown, ""))
    for name, row in found.get("members", {}).items():
        step = row["seconds"]
        shown = f"{step / row['floor']:.1f} ({_time(step)})"
        rows.append((f"arxiv-shaped, {name}, of its serial floor", shown, "<= 3"))
        rows.append((f"arxiv-shaped, {name}, preparation in steps", f"{row['prepared'] / step:.1f}", "< 10"))
    return rows


BOUNDS = {"cora": ">= 16x", "pubmed": ">= 14x", "arxiv-64": ">= 16x"}
FIELD_BOUNDS = {"pubmed": ">= 60x"}


def _steps(found: dict[str, Any]) -> list[Row]:
    rows = []
    for name, bound in BOUNDS.items():
        times = found[name]
        rows.append((f"{name}, all rows, vs PyG (vs _fd)", _against(times, "cat-mf"), bound))
        if "cat-mf-field" in times:
            shown = _against(times, "cat-mf-field")
            rows.append((f"{name}, receptive field, vs PyG (vs _fd)", shown, FIELD_BOUNDS.get(name, "")))
    wide = found["arxiv-256"]
    share = wide["cat-mf"] / wide["floor"]
    rows.append(("arxiv-256, of the serial floor", f"{share:.2f} ({_time(wide['cat-mf'])})", "<= 1.6"))
    for name, times in found.items():
        if "gat" in times:
            sc, cat = times["cat-sc"] / times["cat-mf"], times["cat-mf"] / times["gat"]
            rows.append((f"{name}, SC against MF", f"{sc:.2f}x", "<= 1.05x"))
            rows.append((f"{name}, CAT against our GAT", f"{cat:.2f}x", "<= 1.15x"))
    return rows


def _against(times: dict[str, float], which: str) -> str:
    ratio, fair = times["pyg"] / times[which], times["pyg_fd"] / times[which]
    shown = ", ".join(_time(times[name]) for name in (which, "pyg", "pyg_fd"))
    return f"{ratio:.1f}x ({fair:.1f}x): {shown}"


def _memory(found: dict[str, Any]) -> list[Row]:
    rows = []
    for name, by_name in found.items():
        sizes = {which: row["bytes"] for which, row in by_name.items() if row is not None}
        shown = ", ".join(f"{which} {size / 2**20:.0f} MiB" for which, size in sizes.items())
        bound = {"arxiv-64": "CAT <= 1/8 of PyG", "arxiv-256": "<= 1.4 GB"}.get(name, "")
        rows.append((f"{name}, memory above the graph", shown, bound))
    return rows


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def layers(rows: Iterable[dict[str, Any]]) -> str:
    """Markdown: ours, PyG's, the products alone, in ms; of several runs of a row the last."""
    lines = ["| | PyG / ours | ours, ms | PyG, ms | the products alone, ms |", "|---|---|---|---|---|"]
    for (graph, name), row in {(row["graph"], row["row"]): row for row in rows}.items():
        ms = row["ms"]
        alone = f"{ms['products']:.2f}" if "products" in ms else ""
        ratio = f"{ms['pyg'] / ms['ours']:.1f}x"
        lines.append(f"| {graph}, {name} | {ratio} | {ms['ours']:.2f} | {ms['pyg']:.1f} | {alone} |")
    return "\n".join(lines)


def read_layers(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


if __name__ == "__main__":
    if sys.argv[1].endswith(".jsonl"):
        print(layers(read_layers(Path(sys.argv[1]))))
    else:
        print(table(*(json.loads(Path(name).read_text()) for name in sys.argv[1:])))
