"""conjoint diagnose: which interventions know something about a graph, before anything is trained."""

import argparse
from typing import TYPE_CHECKING, Any

from .parser import add_output_options
from .train import add_data_options, add_split_options

if TYPE_CHECKING:
    from ..evaluation.diagnosis import Diagnosis

SUMMARY = "which interventions know something about a graph, before training"
DESCRIPTION = """\
Look at a graph before training: degrees, how often edges join nodes of one class, what share
of the edges may be random, and for each intervention how well its score tells edges within a
class from edges between classes (AUC: 0.5 = not at all, 1 = always; with a 95% interval).

Only the labels of the training part are used, so validation and test nodes stay unseen;
--labels known adds those of the validation part. Ends with a recommendation."""

EXAMPLES = """\
examples:
  conjoint diagnose                            the Cora that comes with the package
  conjoint diagnose pubmed --data ~/graphs --split public --plot pubmed.png
  conjoint diagnose --edges links.csv --nodes people.csv --label team --labels known
  conjoint diagnose --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dataset", nargs="?", metavar="NAME", help="a benchmark, as in `conjoint train`")
    add_data_options(parser)
    add_split_options(parser)
    parser.add_argument(
        "--labels", choices=("train", "known"), default="train", help="train (default), or also validation"
    )
    parser.add_argument("--plot", metavar="FILE", help="draw it into a .png, .svg or .pdf")
    parser.set_defaults(config=None)
    add_output_options(parser)


def work(options: argparse.Namespace) -> None:
    from pathlib import Path

    import torch

    from ..evaluation.advice import advice, shortlist
    from ..evaluation.diagnosis import diagnose
    from ..evaluation.plots.diagnosis import diagnosis_figure
    from ..evaluation.plots.style import picture
    from ..training.runs.storage import write_atomically
    from .files import PICTURES, must_be_writable
    from .graph import load_graph, split_of
    from .plan import plan_from
    from .terminal import clean, print_json

    if options.plot:
        must_be_writable("--plot", options.plot, PICTURES)
    plan = plan_from(options)
    data = load_graph(plan)
    split = split_of(data, plan.split, plan.seeds[0])
    labelled = split.train if options.labels == "train" else torch.cat([split.train, split.val])
    found = diagnose(data, labelled)
    if options.plot:
        path = Path(options.plot)
        write_atomically(path, picture(diagnosis_figure(found), path.suffix[1:].lower()))
    if options.json:
        print_json(
            {"graph": data.name, **found.to_dict(), "advice": advice(found), "shortlist": shortlist(found)}
        )
        return
    print(clean(data.name) + ": " + _facts(found) + "\n")
    print(evidence_table(found))
    print("\n" + "\n".join(advice(found)))


def _facts(found: "Diagnosis") -> str:
    degree = found.degree
    return (
        f"{found.nodes} nodes, {found.edges} edges; degree {degree['mean']:.1f} on average, "
        f"{degree['median']:.0f} in the middle, {degree['most']:.0f} at most, "
        f"{degree['without']:.1%} of the nodes without an edge"
    )


def evidence_table(found: "Diagnosis") -> str:
    from .terminal import table

    lines: list[dict[str, Any]] = []
    for one in found.evidence:
        words = (
            ("-", "-")
            if one.auc is None
            else (f"{one.auc.value:.3f}", f"{one.auc.low:.3f} to {one.auc.high:.3f}")
        )
        says = "knows the classes" if one.knows else ""
        lines.append({"intervention": one.name, "AUC": words[0], "95% interval": words[1], "says": says})
        lines[-1]["score"] = one.about
    return table(lines, right=("AUC",))
