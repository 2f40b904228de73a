"""Theorems 1 and 2 and Corollary 1 of the paper as code: see docs/theory.md."""

from .collisions import colliding_pair, colliding_scores, condition_holds
from .neighbourhoods import Layer, Neighbourhood, aggregate, attention, gat_logits, mass
from .stars import conv, star

__all__ = [
    "Layer",
    "Neighbourhood",
    "aggregate",
    "attention",
    "colliding_pair",
    "colliding_scores",
    "condition_holds",
    "conv",
    "gat_logits",
    "mass",
    "star",
]
