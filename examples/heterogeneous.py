"""Two kinds of nodes, three relations, an intervention for each: topics of papers.

python examples/heterogeneous.py

The graph is made up: every author has a favourite topic, and most citations are mere politeness.
Between papers, the similarity of smoothed words tells the two sorts of citations apart. Between authors and
papers no similarity makes sense (their features mean different things), but each authorship has a number: the
share of the work. Either goes to the layer of its relation as its intervention.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import HeteroData
from torch_geometric.nn import HeteroConv

from conjoint import CATConv, Intervention
from conjoint.nn.interventions import SmoothedSimilarity

PAPERS, AUTHORS, TOPICS, WORDS = 600, 150, 4, 60


def made_up(seed: int = 0) -> HeteroData:
    random = torch.Generator().manual_seed(seed)
    topic = torch.arange(PAPERS) % TOPICS
    favourite = torch.arange(AUTHORS) % TOPICS
    spoken = torch.full((TOPICS, WORDS), 0.08)
    for k in range(TOPICS):
        spoken[k, k * 8 : k * 8 + 8] = 0.5
    data = HeteroData()
    data["paper"].x = torch.bernoulli(spoken[topic], generator=random)
    data["paper"].y = topic
    data["author"].x = torch.randn(AUTHORS, 5, generator=random)
    citing = torch.randint(0, PAPERS, (4000,), generator=random)
    cited = torch.randint(0, PAPERS, (4000,), generator=random)
    meant = (topic[citing] == topic[cited]) | (torch.rand(4000, generator=random) < 0.5)
    data["paper", "cites", "paper"].edge_index = torch.stack([cited[meant], citing[meant]])
    author = torch.randint(0, AUTHORS, (2000,), generator=random)
    paper = torch.randint(0, PAPERS, (2000,), generator=random)
    own = favourite[author] == topic[paper]
    wrote = own | (torch.rand(2000, generator=random) < 0.3)
    share = torch.where(own, 0.7, 0.1)[wrote]
    data["author", "writes", "paper"].edge_index = torch.stack([author, paper])[:, wrote]
    data["author", "writes", "paper"].share = share
    data["paper", "by", "author"].edge_index = torch.stack([paper, author])[:, wrote]
    data["paper", "by", "author"].share = share
    return data


def layer(data: HeteroData, out: int, interventions: bool) -> HeteroConv:
    """One CATConv per relation; -1 leaves the sizes of the inputs to the first call."""

    def between(kind: tuple[str, str, str], scores: Intervention | Tensor | None) -> CATConv:
        one_kind = kind[0] == kind[2]
        # Nobody is both author and paper, so only citations get self-loops and the self term.
        return CATConv(
            -1 if one_kind else (-1, -1),
            out,
            add_self_loops=one_kind,
            self_term=one_kind,
            strategy="explicit",
            intervention=scores if interventions else None,
        )

    words = SmoothedSimilarity(features=data["paper"].x)  # in both layers, the words
    return HeteroConv(
        {
            kind: between(kind, words if kind[1] == "cites" else data[kind].share.log())
            for kind in data.edge_types
        }
    )


class Network(nn.Module):
    def __init__(self, data: HeteroData, interventions: bool) -> None:
        super().__init__()
        self.first = layer(data, 16, interventions)
        self.second = layer(data, TOPICS, interventions)

    def forward(self, data: HeteroData) -> Tensor:
        hidden = {kind: F.elu(x) for kind, x in self.first(data.x_dict, data.edge_index_dict).items()}
        return self.second(hidden, data.edge_index_dict)["paper"]


def accuracy(data: HeteroData, interventions: bool, epochs: int = 60, seed: int = 0) -> float:
    """Train on 5 papers of each topic, test on all others."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network, y = Network(data, interventions), data["paper"].y
        with torch.no_grad():
            network(data)  # gives the lazy weights their shapes
        optimiser = torch.optim.Adam(network.parameters(), lr=0.01, weight_decay=5e-4)
        train = torch.arange(5 * TOPICS)
        for _ in range(epochs):
            optimiser.zero_grad()
            F.cross_entropy(network(data)[train], y[train]).backward()
            optimiser.step()
    right = network.eval()(data).argmax(dim=1) == y
    return float(right[len(train) :].float().mean())


def main() -> None:
    data = made_up()
    print(f"feature attention alone: {accuracy(data, interventions=False):.3f}")
    print(f"with an intervention for each relation: {accuracy(data, interventions=True):.3f}")


if __name__ == "__main__":
    main()
