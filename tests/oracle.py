"""The paper's equations on dense NumPy matrices, written once more and independently of the library.

Everything is N x N here, which is exactly what the library must never do.
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def neighbourhood(edge_index: NDArray[np.int64], num_nodes: int) -> Array:
    """mask[i, j] = 1 if j is a source of i; every node is its own. (no parallel edges)"""
    mask = np.zeros((num_nodes, num_nodes))
    mask[edge_index[1], edge_index[0]] = 1.0
    np.fill_diagonal(mask, 1.0)
    return mask


def simple_adjacency(edge_index: NDArray[np.int64], num_nodes: int) -> Array:
    a = np.zeros((num_nodes, num_nodes))
    a[edge_index[1], edge_index[0]] = 1.0
    np.fill_diagonal(a, 0.0)
    return a


def masked_softmax(logit: Array, mask: Array) -> Array:
    weight = np.exp(logit) * mask
    return weight / weight.sum(axis=1, keepdims=True)


def feature_attention(h: Array, att_src: Array, att_dst: Array, mask: Array, slope: float) -> Array:
    """Eq. 4 for one head."""
    logit = (h @ att_dst)[:, None] + (h @ att_src)[None, :]
    return masked_softmax(np.where(logit > 0, logit, slope * logit), mask)


def structural_attention(c: Array, mask: Array) -> Array:
    """Eq. 5."""
    return masked_softmax(c, mask)


def mixing(g_f: float, g_s: float) -> tuple[float, float]:
    """Eq. 6."""
    total = np.exp(g_f) + np.exp(g_s)
    return float(np.exp(g_f) / total), float(np.exp(g_s) / total)


def implicit(f: Array, s: Array, r_f: float, r_s: float) -> Array:
    """Eq. 7, with its denominator."""
    mixed = r_f * f + r_s * s
    return mixed / mixed.sum(axis=1, keepdims=True)


def explicit(f: Array, s: Array) -> Array:
    """Eq. 8, as the renormalised product that the paper writes."""
    product = f * s
    return product / product.sum(axis=1, keepdims=True)


def aggregate(alpha: Array, h: Array, eps: float, mask: Array) -> Array:
    """Eq. 9."""
    out = np.zeros_like(h)
    for i in range(len(h)):
        size = mask[i].sum()
        out[i] = (alpha[i, i] + eps / size) * h[i]
        for j in range(len(h)):
            if j != i:
                out[i] += alpha[i, j] * h[j]
    return out


def mf_loss(a: Array, v: Array) -> float:
    """Eq. 2 over all pairs."""
    return float(((a - v @ v.T) ** 2).sum())


def sc_loss(a: Array, v: Array) -> float:
    """Eq. 3 over all pairs, read as self-expressiveness."""
    return float(((a - v @ v.T @ a) ** 2).sum())


def mf_gradient(a: Array, v: Array) -> Array:
    residual = a - v @ v.T
    return -2.0 * (residual + residual.T) @ v


def sc_gradient(a: Array, v: Array) -> Array:
    residual = (a - v @ v.T @ a) @ a.T
    return -2.0 * (residual + residual.T) @ v


def cosine(x: Array) -> Array:
    norm = np.linalg.norm(x, axis=1)
    norm[norm == 0.0] = 1.0
    unit = x / norm[:, None]
    return unit @ unit.T
