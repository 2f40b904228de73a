"""Classify the papers of Cora from 20 labels per topic, the scikit-learn way, and ask why.

python examples/estimator.py
"""

import numpy as np
import scipy.sparse as sp

from conjoint import CATClassifier
from conjoint.data import load_graph, make_split
from conjoint.graph.sparse import to_scipy


def main() -> None:
    cora = load_graph("cora", source="embedded")
    X, truth = to_scipy(cora.x), cora.y.numpy()
    split = make_split(cora, "per-class", seed=0)
    y = np.full(len(truth), -1)  # -1: nobody has told us
    y[split.train] = truth[split.train]
    y[split.val] = truth[split.val]

    clf = CATClassifier(random_state=0).fit(X, y, graph=cora.edge_index, validation=split.val.numpy())
    test = split.reveal_test().numpy()
    print(f"{len(X.data)} words in {X.shape[0]} papers, {len(split.train)} labels to train on", end="; ")
    print(f"validation chose {clf.model_}, {clf.n_iter_} epochs")
    print(f"accuracy on {len(test)} test papers: {(clf.transduction_[test] == truth[test]).mean():.3f}")

    # Take 100 papers away, citations and all; then let them join by the citations they make.
    rng = np.random.default_rng(0)
    late = rng.choice(np.flatnonzero(y < 0), 100, replace=False)
    early = np.setdiff1d(np.arange(len(y)), late)
    A = _matrix(cora.edge_index.numpy(), len(y))
    before = CATClassifier(intervention="mf", random_state=0)
    before.fit(X[early], y[early], graph=A[early][:, early], validation=np.isin(early, split.val))
    order = np.concatenate([early, late])
    by_words = before.predict(X[late])  # linked to the most similar papers
    by_citations = before.predict(X[late], graph=A[late][:, order])  # linked as they cite
    print(
        f"100 papers that came later: {(by_words == truth[late]).mean():.2f} linked by similarity, ", end=""
    )
    print(f"{(by_citations == truth[late]).mean():.2f} linked by citations")

    table = before.attention_
    node = int(np.searchsorted(early, test[~np.isin(test, late)][0]))  # its row in X[early]
    own = (table.dst == node) & (table.layer == 1)
    print(f"\nWhat row {node} receives from in the last layer, most first:")
    for k in np.flatnonzero(own)[np.argsort(-table.conjoint[own])][:5]:
        print(
            f"  {table.src[k]:5d}  weight {table.conjoint[k]:.3f}"
            f" = features {table.feature[k]:.3f} and structure {table.structural[k]:.3f}"
        )


def _matrix(edge_index: np.ndarray, num_nodes: int) -> sp.csr_array:
    return sp.csr_array((np.ones(edge_index.shape[1]), edge_index), shape=(num_nodes, num_nodes))


if __name__ == "__main__":
    main()
