"""Make `fingerprints.json` anew, with the conjoint that is installed:

    cd tests && python -m golden.record_fingerprints

CONJOINT_DATA must name the folder with the benchmarks' raw files.
"""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from golden.bits import machine
from golden.commands import HERE
from golden.graphs import BENCHMARKS, OWN, benchmark, facebook, fingerprint_of, other, splits_of


def main() -> None:
    root = Path(os.environ["CONJOINT_DATA"])
    found: dict[str, Any] = {
        "made_with": machine(),
        "own": {},
        "own_splits": {},
        "benchmarks": {},
        "other": {},
    }
    for name, make in OWN.items():
        with tempfile.TemporaryDirectory() as folder:
            graph = make(Path(folder))
        found["own"][name] = fingerprint_of(graph)
        if name == "all columns":
            found["own_splits"] = splits_of(graph)
    graphs = {"embedded": benchmark("cora", source="embedded")}
    for name, options in BENCHMARKS.items():
        graphs[name] = benchmark(name, root=root, **options)
    found["benchmarks"] = {name: described(graph) for name, graph in graphs.items()}
    found["other"]["facebook"] = fingerprint_of(facebook(root))
    for file in sorted((root / "other").glob("*.npz")):
        found["other"][file.stem] = fingerprint_of(other(file))
    (HERE / "fingerprints.json").write_text(json.dumps(found, indent=1) + "\n")


def described(graph: Any) -> dict[str, Any]:
    return {"graph": fingerprint_of(graph), "splits": splits_of(graph)}


if __name__ == "__main__":
    main()
