"""Conjoint: attention on graphs that listens to structure as well as features."""

__version__ = "0.1.0"
