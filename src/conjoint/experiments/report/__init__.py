"""The report: one HTML file that needs nothing else, made from rows alone."""

from .build import build_report

__all__ = ["build_report"]
