"""conjoint diagnose: which interventions know something about a graph, before anything is trained."""

import argparse

import torch

from ..evaluation.plots import diagnosis_figure, write_picture
from ..selection.diagnosis import Diagnosis, advice, diagnose, shortlist
from ..selection.folds import judging_split
from ..selection.learner import split_of
from ..text import clean
from .output import PICTURES, answer, must_be_writable, table
from .plan import graph_of, plan_from


def work(options: argparse.Namespace) -> None:
    must_be_writable("--plot", options.plot, PICTURES)
    plan = plan_from(options)
    data = graph_of(plan)
    split = judging_split(data, split_of(data, plan.split, plan.seeds[0]))
    labelled = split.train if options.labels == "train" else torch.cat([split.train, split.val])
    found = diagnose(data, labelled)
    if options.plot:
        write_picture(options.plot, diagnosis_figure(found))
    advised = advice(found)
    document = {"graph": data.name, **found.to_dict(), "advice": advised, "shortlist": shortlist(found)}
    answer(options, document, f"{clean(data.name)}: {_facts(found)}\n", _evidence(found), "", *advised)


def _facts(found: Diagnosis) -> str:
    degree = found.degree
    return (
        f"{found.nodes} nodes, {found.edges} edges; degree {degree['mean']:.1f} on average, "
        f"{degree['median']:.0f} in the middle, {degree['most']:.0f} at most, "
        f"{degree['without']:.1%} of the nodes without an edge"
    )


def _evidence(found: Diagnosis) -> str:
    rows = [
        {
            "intervention": one.name,
            "AUC": "-" if one.auc is None else f"{one.auc.value:.3f}",
            "95% interval": "-" if one.auc is None else f"{one.auc.low:.3f} to {one.auc.high:.3f}",
            "says": "knows the classes" if one.knows else "",
            "score": one.about,
        }
        for one in found.evidence
    ]
    return table(rows, right=("AUC",))
