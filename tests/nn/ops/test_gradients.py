"""Each input's gradient is the same, and of its shape, where it is the only one that is asked for."""

from contextlib import nullcontext

import pytest
import torch
from torch import Tensor

from conjoint import kernels
from conjoint.nn import ops
from conjoint.nn.ops.entries import weighted_sum
from kernel_cases import Operation, numbers, random_graph

ADJ = random_graph(30, 90, 0)
N, E, H, C = ADJ.num_src, ADJ.num_entries, 2, 3
SEED = torch.tensor([7])


def some(*shape: int) -> Tensor:
    return numbers(*shape, seed=len(shape) + sum(shape))


CASES: dict[str, tuple[Operation, list[Tensor]]] = {
    "project": (ops.project, [some(N, 5), some(4, 5)]),
    "head_dot": (ops.head_dot, [some(N, H, C), some(H, C)]),
    "head_dots": (ops.head_dots, [some(N, H, C), some(H, C), 2 * some(H, C)]),
    "head_project": (ops.head_project, [some(N, H, C), some(H, 4, C)]),
    "edge_dot": (lambda a, b: ops.edge_dot(ADJ, a, b), [some(N, C), 2 * some(N, C)]),
    "weighted_sum": (lambda w, x: weighted_sum(ADJ, False, w, x), [some(E), some(N, C)]),
    "its transpose": (lambda w, x: weighted_sum(ADJ, True, w, x), [some(E), some(N, C)]),
    "factor_loss": (lambda v, s: ops.factor_loss(ADJ, v, s), [some(N, C), some(E)]),
    "aggregate": (
        lambda alpha, x, eps: ops.aggregate(ADJ, alpha, x, eps, 0.4, SEED),
        [some(E, H), some(N, H, C), some(H)],
    ),
    "aggregate_and_project": (
        lambda alpha, x, w, eps: ops.aggregate_and_project(ADJ, alpha, x, w, eps, 0.4, SEED),
        [some(E, H), some(N, 1, C), some(H, 4, C), some(H)],
    ),
    "attention, implicit": (
        lambda src, dst, edge, s, mix: ops.attention(ADJ, src, dst, edge, s, mix.softmax(-1), 0.2),
        [some(N, H), 2 * some(N, H), some(E, H), some(E, 1).exp(), some(H, 2)],
    ),
    "attention, explicit": (
        lambda src, dst, edge, s: ops.attention(ADJ, src, dst, edge, s, None, 0.2)[0],
        [some(N, H), 2 * some(N, H), some(E, H), some(E, H)],
    ),
    "attend, implicit": (
        lambda x, w, src, dst, edge, s, mix, eps, bias: ops.attend(
            ADJ, x, src, dst, edge, s, mix, eps, 0.2, 0.4, SEED, False, bias, w
        ),
        [
            some(N, 5), some(H * C, 5), some(H, C), 2 * some(H, C), some(E, H), some(E).exp(), some(H, 2),
            some(H), some(H * C),
        ],
    ),
    "attend, explicit and merged": (
        lambda h, src, dst, s, eps, bias: ops.attend(
            ADJ, h, src, dst, None, s, None, eps, 0.2, 0.0, None, True, bias
        ),
        [some(N, H, C), some(H, C), 2 * some(H, C), some(E, H), some(1), some(C)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_one_gradient_alone(name: str, fast: bool) -> None:
    operation, inputs = CASES[name]

    def gradients(wanted: list[int]) -> list[Tensor | None]:
        given = [one.clone().requires_grad_(place in wanted) for place, one in enumerate(inputs)]
        found = operation(*given)
        results = (found,) if isinstance(found, Tensor) else found
        torch.stack([(one * some(*one.shape)).sum() for one in results]).sum().backward()
        return [one.grad for one in given]

    with nullcontext() if fast else kernels.disabled():
        together = gradients(list(range(len(inputs))))
        for place, expected in enumerate(together):
            alone = gradients([place])
            assert expected is not None and bool(expected.any())
            assert [one is not None for one in alone] == [k == place for k in range(len(inputs))]
            torch.testing.assert_close(alone[place], expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("fast", [True, False])
def test_nothing_is_asked_for(fast: bool) -> None:
    """Results that need no gradient, and gradients of results that nobody used."""
    with nullcontext() if fast else kernels.disabled():
        for operation, inputs in CASES.values():
            found = operation(*inputs)
            assert not any(one.requires_grad for one in ([found] if isinstance(found, Tensor) else found))
        x, att = some(N, H, C).requires_grad_(), some(H, C).requires_grad_()
        first, second = ops.head_dots(x, att, att)
        assert first.shape == second.shape == (N, H)
        score, attention = ops.factor_attention(ADJ, some(N, C).requires_grad_())
        assert score.shape == attention.shape == (E,)
