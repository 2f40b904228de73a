"""A plain PyG script for Cora, as a user would write it: the peer of `conjoint train cora`."""

import sys

import torch
import torch.nn.functional as F

from .graphs import planetoid
from .peers import PyGGAT


def main(epochs: int) -> None:
    case = planetoid("cora")
    torch.manual_seed(0)
    model = PyGGAT(case)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005, weight_decay=5e-4)
    x = case.dense_x
    val = torch.arange(140, 640)  # the public split's validation nodes
    for _ in range(epochs):
        model.train()
        optimizer.zero_grad()
        F.cross_entropy(model(x, case.edge_index)[case.train], case.y[case.train]).backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            F.cross_entropy(model(x, case.edge_index)[val], case.y[val])


if __name__ == "__main__":
    main(int(sys.argv[1]))
