"""Adam by rows: torch's Adam where every row is met, and nothing at all where a row is not."""

import torch
from torch import nn

from conjoint.training.optimizer import RowAdam


def test_all_rows_in_every_step_is_adam() -> None:
    start = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
    ours, theirs = nn.Parameter(start.clone(), requires_grad=False), nn.Parameter(start.clone())
    by_rows, adam = RowAdam([ours], lr=0.1), torch.optim.Adam([theirs], lr=0.1)
    for k in range(20):
        grad = torch.randn(6, 3, generator=torch.Generator().manual_seed(k + 1))
        order = torch.randperm(6, generator=torch.Generator().manual_seed(k))
        by_rows.step()  # what has no gradient stays
        by_rows.step_rows(ours, order, grad[order])
        theirs.grad = grad.clone()
        adam.step()
        assert torch.allclose(ours, theirs, atol=1e-6)


def test_other_rows_stay_to_the_bit_and_count_their_own_steps() -> None:
    values = nn.Parameter(torch.randn(5, 2, generator=torch.Generator().manual_seed(0)), requires_grad=False)
    before = values.clone()
    adam = RowAdam([values], lr=0.1)
    rows = torch.tensor([3, 1])
    for _ in range(4):
        adam.step_rows(values, rows, torch.ones(2, 2))
    others = torch.tensor([0, 2, 4])
    assert torch.equal(values[others], before[others])
    assert adam.state[values]["step"].tolist() == [0, 4, 0, 4, 0]
    adam.step_rows(values, others[:1], torch.full((1, 2), 1e-3))
    assert torch.allclose(values[0], before[0] - 0.1, atol=1e-3)  # a first step is lr, whatever its slope
