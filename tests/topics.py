"""A made-up citation graph: nodes with few words out of many, edges mostly within a topic."""

import numpy as np
import torch

from conjoint.graph.graph import Graph
from conjoint.graph.sparse import to_csr

TOPICS = 3


def topic_graph(nodes: int = 300, words: int = 120, random_edges: int = 0, seed: int = 0) -> Graph:
    """Six words a node, two thirds of them of its topic; three edges a node, all within the topic.

    `random_edges` more join any two nodes.
    """
    rng = np.random.default_rng(seed)
    y = np.arange(nodes) % TOPICS
    x = np.zeros((nodes, words), dtype=np.float32)
    for node, topic in enumerate(y):
        own = rng.choice(words // TOPICS, 4, replace=False) * TOPICS + topic
        x[node, own] = 1.0
        x[node, rng.choice(words, 2)] = 1.0
    ends = [rng.integers(0, nodes, 3 * nodes), rng.integers(0, nodes // TOPICS, 3 * nodes)]
    ends[1] = ends[1] * TOPICS + y[ends[0]]
    other = rng.integers(0, nodes, (2, random_edges))
    pairs = np.concatenate([np.stack(ends), other], axis=1)
    pairs = pairs[:, pairs[0] != pairs[1]]
    edges = torch.from_numpy(np.unique(np.concatenate([pairs, pairs[::-1]], axis=1), axis=1))
    names = [f"topic {k}" for k in range(TOPICS)]
    ids = np.arange(nodes)
    return Graph(to_csr(x), torch.from_numpy(y), edges, ids=ids, class_names=names, name="topics")
