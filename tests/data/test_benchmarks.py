"""The paper's graphs: sizes, splits, sources, and what a missing or unknown file leads to."""

import pickletools
import shutil
import zipfile
from collections import Counter
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from conjoint.benchmark_files import BENCHMARKS
from conjoint.data import as_graph, benchmarks, datasets_table, load_graph, make_split
from conjoint.data.published import COAUTHOR_CLASSES
from conjoint.errors import InputError
from conjoint.graph.sparse import to_scipy
from conjoint.graph.splits import by_time

# name: nodes, entries (twice the undirected edges), features, classes
SIZES = {
    "cora": (2708, 10556, 1433, 7),
    "citeseer": (3327, 9104, 3703, 6),
    "pubmed": (19717, 88648, 500, 3),
    "coauthor-cs": (18333, 163788, 6805, 15),
}


@pytest.fixture
def no_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No folder named, an empty cache, no network."""
    monkeypatch.delenv("CONJOINT_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def refuse(url: str, target: Path, sha256: str | None = None) -> None:
        raise benchmarks.OfflineError(f"{url}: no network")

    monkeypatch.setattr("conjoint.data.benchmarks.fetch", refuse)
    return tmp_path


def check_form(data: Data) -> None:
    """What every loader promises."""
    row, col = data.edge_index
    n = data.num_nodes
    key = row * n + col
    assert data.edge_index.dtype == torch.int64 and bool((key[1:] > key[:-1]).all()), "sorted, no duplicates"
    assert torch.equal(key, (col * n + row).sort().values), "both directions"
    assert not bool((row == col).any())
    assert data.x.dtype == torch.float32 and data.x.shape[0] == n
    assert data.y.dtype == torch.int64 and len(data.y) == len(data.node_ids) == n
    assert int(data.y.max()) == len(data.class_names) - 1
    assert all(isinstance(line, str) for line in data.notes)


def test_the_embedded_cora_needs_nothing(no_data: Path) -> None:
    data = load_graph("cora")
    check_form(data)
    assert (data.num_nodes, data.num_edges, data.x.size(1), len(data.class_names)) == SIZES["cora"]
    assert data.x.layout == torch.sparse_csr
    assert int(data.node_ids[0]) == 31336 and data.class_names[int(data.y[0])] == "Neural_Networks"
    assert as_graph(data).fingerprint == as_graph(load_graph("cora", source="embedded")).fingerprint
    assert not (no_data / "cache").exists()


def test_the_embedded_cora_is_small_and_plain(no_data: Path) -> None:
    import conjoint.data

    path = Path(conjoint.data.__file__).parent / "embedded" / "cora.npz"
    assert path.stat().st_size < 150_000
    with np.load(path, allow_pickle=False) as held:
        assert held["citations"].shape == (2, 5429)
        assert all(held[name].dtype.kind in "iuU" for name in held.files)


@pytest.mark.parametrize("name", SIZES)
def test_sizes_match_the_papers_table(name: str, shared_data: Path) -> None:
    data = load_graph(name, root=shared_data)
    check_form(data)
    assert (data.num_nodes, data.num_edges, data.x.size(1), len(data.class_names)) == SIZES[name]


# The paper's |E| and how it comes about: (|E| there, self-loops, duplicates, times each edge is counted)
PAPER_EDGES = {
    "cora": (5429, 0, 151, 1),
    "citeseer": (4732, 124, 56, 1),
    "pubmed": (44338, 3, 11, 1),
    "coauthor-cs": (327576, 0, 0, 4),
}


@pytest.mark.parametrize("name", PAPER_EDGES)
def test_the_papers_edge_counts_are_explained(name: str, shared_data: Path) -> None:
    stated, loops, duplicates, times = PAPER_EDGES[name]
    data = load_graph(name, root=shared_data)
    assert stated == times * (data.num_edges // 2 + loops + duplicates)
    dropped = {
        line.split(" ", 2)[2].split(" (")[0]: int(line.split()[1]) for line in data.notes if "dropped" in line
    }
    # Planetoid's file lists every edge from both ends, so the notes count twice.
    assert dropped.get("self-loops", 0) == 2 * loops and dropped.get("duplicate edges", 0) == 2 * duplicates


@pytest.mark.parametrize("name", [*SIZES, "cora-release", "citeseer-release", "pubmed-release"])
def test_loading_twice_gives_the_same_bytes(name: str, shared_data: Path) -> None:
    assert (
        as_graph(load_graph(name, root=shared_data)).fingerprint
        == as_graph(load_graph(name, root=shared_data)).fingerprint
    )


def test_arxiv_is_read_from_the_raw_tables_and_never_makes_up_features(shared_data: Path) -> None:
    if not (shared_data / "ogbn_arxiv/raw/node-feat.csv.gz").exists():
        with pytest.raises(InputError, match=r"node-feat\.csv\.gz is absent.*features='spectral:128'"):
            load_graph("ogbn-arxiv", root=shared_data)
    data = load_graph("ogbn-arxiv", root=shared_data, features="degree:4")
    check_form(data)
    assert (data.num_nodes, data.num_edges, len(data.class_names)) == (169343, 2315598, 40)
    assert any("degree:4" in line for line in data.notes)
    split = make_split(data, "time")
    assert split.sizes == (90941, 29799, 48603)
    # The published files are exactly the rule "up to 2017, 2018, later".
    assert data.node_time is not None
    rule = by_time(data.y.numpy(), data.node_time, train_until=2017, val_until=2018)
    assert torch.equal(rule.train, split.train) and torch.equal(rule.val, split.val)
    assert torch.equal(rule.reveal_test(), split.reveal_test())


@pytest.mark.parametrize(
    ("name", "folder"), [("cora", "Cora"), ("citeseer", "CiteSeer"), ("pubmed", "PubMed")]
)
@pytest.mark.filterwarnings("ignore::Warning")  # PyG's own reading of ten-year-old pickles
def test_planetoid_equals_pygs_reading(name: str, folder: str, shared_data: Path, tmp_path: Path) -> None:
    from torch_geometric.io import read_planetoid_data

    theirs = read_planetoid_data(str(shared_data / "planetoid" / folder / "raw"), name)
    ours = load_graph(name, root=shared_data, sparse=False)
    assert torch.equal(ours.x, theirs.x)
    labelled = ours.y >= 0
    assert torch.equal(ours.y[labelled], theirs.y[labelled])
    assert int((~labelled).sum()) == (15 if name == "citeseer" else 0)
    n = ours.num_nodes
    assert torch.equal(
        ours.edge_index[0] * n + ours.edge_index[1],
        (theirs.edge_index[0] * n + theirs.edge_index[1]).sort().values,
    )
    split = make_split(ours, "public")
    for index, mask in (
        (split.train, theirs.train_mask),
        (split.val, theirs.val_mask),
        (split.reveal_test(), theirs.test_mask),
    ):
        assert torch.equal(index, mask.nonzero().view(-1))


def test_planetoids_cora_is_the_embedded_one_in_another_order(shared_data: Path) -> None:
    ours, theirs = load_graph("cora", source="embedded"), load_graph("cora", root=shared_data)
    # A paper is known by its words; the few that share all words with another are compared by count only.
    mine, yours = ([row.tobytes() for row in d.x.to_dense().numpy()] for d in (ours, theirs))
    assert sorted(mine) == sorted(yours)
    once = {words for words, papers in Counter(mine).items() if papers == 1}
    assert len(once) > 2600
    place = {words: i for i, words in enumerate(yours)}
    to_theirs = np.array([place[words] if words in once else -1 for words in mine])
    known = to_theirs >= 0
    assert [ours.class_names[c] for c in ours.y[known]] == [
        theirs.class_names[c] for c in theirs.y[to_theirs[known]]
    ]
    row, col = to_theirs[ours.edge_index.numpy()]
    inside = (row >= 0) & (col >= 0)
    their_row, their_col = theirs.edge_index.numpy()
    unmatched = np.setdiff1d(np.arange(2708), to_theirs)
    expected = ~(np.isin(their_row, unmatched) | np.isin(their_col, unmatched))
    assert set(zip(row[inside], col[inside], strict=True)) == set(
        zip(their_row[expected], their_col[expected], strict=True)
    )


def test_the_release_is_the_embedded_cora_in_the_same_order(shared_data: Path) -> None:
    ours, theirs = load_graph("cora", source="embedded"), load_graph("cora-release", root=shared_data)
    assert torch.equal(ours.edge_index, theirs.edge_index)
    assert (to_scipy(ours.x) != to_scipy(theirs.x)).nnz == 0
    mine, yours = make_split(ours, "released"), make_split(theirs, "released")
    assert torch.equal(mine.train, yours.train) and torch.equal(mine.val, yours.val)
    assert torch.equal(mine.reveal_test(), yours.reveal_test())
    assert mine.notes == yours.notes == ("40 nodes in both validation and test, as published",)
    # Class numbers differ, class names do not.
    assert [ours.class_names[c] for c in ours.y] == [theirs.class_names[c] for c in theirs.y]


def test_coauthors_class_names_stand_in_the_file(shared_data: Path) -> None:
    with zipfile.ZipFile(shared_data / "coauthor/CS/raw/ms_academic_cs.npz") as held:
        raw = held.read("class_names.npy")
    words = [arg for _, arg, _ in pickletools.genops(raw[raw.index(b"\n") + 1 :]) if isinstance(arg, str)]
    assert [word for word in words if word in COAUTHOR_CLASSES.split()] == COAUTHOR_CLASSES.split()


def test_a_changed_planetoid_file_is_not_unpickled(shared_data: Path, tmp_path: Path) -> None:
    raw = tmp_path / "planetoid/Cora/raw"
    shutil.copytree(shared_data / "planetoid/Cora/raw", raw)
    victim = raw / "ind.cora.graph"
    victim.chmod(0o644)
    victim.write_bytes(b"cos\nsystem\n(S'touch " + str(tmp_path / "ran").encode() + b"'\ntR.")
    with pytest.raises(InputError, match=r"ind\.cora\.graph is not the file that Planetoid published"):
        load_graph("cora", root=tmp_path)
    assert not (tmp_path / "ran").exists()


def test_the_unpickler_admits_nothing_else(tmp_path: Path) -> None:
    from conjoint.data.planetoid import _unpickle

    with pytest.raises(InputError, match=r"os\.system"):
        _unpickle(b"cos\nsystem\n(S'touch " + str(tmp_path / "ran").encode() + b"'\ntR.")
    assert not (tmp_path / "ran").exists()


def test_pygs_own_layout_is_found_as_well(shared_data: Path, tmp_path: Path) -> None:
    (tmp_path / "Cora").mkdir()
    (tmp_path / "Cora/raw").symlink_to(shared_data / "planetoid/Cora/raw")
    assert load_graph("cora", root=tmp_path).known_splits["public"].sizes == (140, 500, 1000)


def test_the_environment_names_a_folder(shared_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONJOINT_DATA", str(shared_data))
    assert "public" in load_graph("cora").known_splits
    assert "public" not in load_graph("cora", source="embedded").known_splits


@pytest.mark.parametrize("name", [name for name in BENCHMARKS if name != "cora"])
def test_offline_the_message_says_which_file_to_put_where(name: str, no_data: Path) -> None:
    source = next(iter(BENCHMARKS[name].values()))
    with pytest.raises(InputError) as error:
        load_graph(name)
    message = str(error.value)
    assert "no network" in message and "CONJOINT_DATA" in message and "\n" not in message
    assert all(file in message for file in source.files)
    assert str(no_data / "cache/conjoint" / source.layouts[0]) in message


def test_a_half_filled_folder_names_what_is_missing(no_data: Path) -> None:
    folder = no_data / "planetoid/PubMed/raw"
    folder.mkdir(parents=True)
    (folder / "ind.pubmed.x").touch()
    with pytest.raises(InputError, match=r"lacks ind\.pubmed\.tx"):
        load_graph("pubmed", root=no_data)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("core", {}, "choose one of cora"),
        ("cora", {"source": "dgl"}, "choose one of planetoid, release, embedded"),
        ("cora", {"root": "/no/such/folder"}, "is not a folder"),
        ("cora", {"features": "magic:3"}, "write 'spectral:128'"),
        ("cora", {"sparse": "yes"}, "take 'auto', True or False"),
        ("pubmed", {"download": False}, "downloads are switched off"),
        ("pubmed-release", {}, "cannot be downloaded; put pubmed.npz into"),
    ],
)
def test_bad_arguments(name: str, options: dict, message: str, no_data: Path) -> None:
    with pytest.raises(InputError, match=message):
        load_graph(name, **options)


def test_dense_and_sparse_are_the_same_graph() -> None:
    sparse, dense = (load_graph("cora", source="embedded", sparse=choice) for choice in (True, False))
    assert dense.x.layout == torch.strided
    assert torch.equal(sparse.x.to_dense(), dense.x)
    assert as_graph(sparse).fingerprint == as_graph(dense).fingerprint


@pytest.mark.parametrize("part", ["given_x", "y", "edges", "ids", "class_names"])
def test_the_fingerprint_sees_every_part(part: str) -> None:
    data = load_graph("cora", source="embedded", sparse=False)
    other = data.changed(class_names=[*data.class_names[:-1], "Else"])
    if part != "class_names":
        other = data.changed(**{part: deepcopy(getattr(data, part))})
        getattr(other, part)[0] += 1
    assert other.fingerprint != data.fingerprint


def test_the_catalogue_names_every_graph_and_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CONJOINT_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    rows = datasets_table()
    assert {row["name"] for row in rows} == set(BENCHMARKS)
    where = {(row["name"], row["source"]): row["where"] for row in rows}
    assert where["cora", "embedded"] == "inside the package"
    assert "downloaded on first use" in where["ogbn-arxiv", "ogb"]
    assert where["pubmed", "release"].startswith("put it into")


def test_the_catalogue_finds_what_is_there_and_states_true_sizes(shared_data: Path) -> None:
    for row in datasets_table(shared_data):
        if row["source"] != "embedded":
            assert str(shared_data) in row["where"]
        if row["name"] != "ogbn-arxiv":
            data = load_graph(row["name"], root=shared_data, source=row["source"])
            found = (data.num_nodes, data.num_edges // 2, data.x.size(1), len(data.class_names))
            assert found == tuple(row[key] for key in ("nodes", "edges", "features", "classes"))
            assert set(data.known_splits) <= set(row["splits"])
