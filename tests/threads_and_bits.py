"""Train a few models at several numbers of threads. Prints one JSON object: case -> digests of the weights.

Run by test_products.py in fresh processes, since MKL takes its settings from the environment only once.
"""

import hashlib
import json
import sys

import torch
from torch import Tensor

from conjoint.data import load_graph, make_split
from conjoint.nn import zoo
from conjoint.threads import LARGE, steady_products
from conjoint.training import TrainConfig, fit

# gcn: its gradient is a small product with a long sum, which MKL splits by threads.
# gin, rescat: normalisation.
CASES = (
    ("cat-i-mf", "whole"),
    ("cat-e-sc", "auto"),
    ("gcn", "whole"),
    ("gin", "whole"),
    ("spread-trust", "whole"),
    ("gated-trust", "whole"),
    ("rescat-i-mf", "whole"),
)


def digest(tensors: list[Tensor]) -> str:
    content = hashlib.sha256()
    for tensor in tensors:
        content.update(tensor.detach().contiguous().numpy().tobytes())
    return content.hexdigest()


def trained(name: str, field: str) -> str:
    data = load_graph("cora", source="embedded")
    model = zoo.build(name, features=data.x.size(1), classes=7, num_nodes=int(data.num_nodes or 0), seed=0)
    fitted = fit(model, data, make_split(data, "per-class", 0), TrainConfig(epochs=3, field=field, clip=5.0))
    return digest(list(fitted.model.state_dict().values()))


def large_products() -> str:
    generator = torch.Generator().manual_seed(0)
    x, weight, back = (torch.randn(*s, generator=generator) for s in ((LARGE, 128), (128, 40), (LARGE, 40)))
    with steady_products(LARGE):
        return digest([x @ weight, x.t() @ back, back @ weight.t()])


def main(threads: list[int]) -> None:
    found: dict[str, list[str]] = {"large products": []}
    for count in threads:
        torch.set_num_threads(count)
        found["large products"].append(large_products())
        for name, field in CASES:
            found.setdefault(f"{name} {field}", []).append(trained(name, field))
    print(json.dumps(found))


if __name__ == "__main__":
    main([int(count) for count in sys.argv[1:]])
