"""A diagnosis in words: what to try, and why. Candidates for training, which validation then judges."""

from .diagnosis import Diagnosis

FEW_EDGES = 10  # fewer labelled edges than this of either kind say next to nothing
NOISY = 0.25  # from this share of random-looking edges on, the graph is called noisy
# Tried whatever the labelled edges say, for those are often a handful: no structure at all, the paper's own,
# and the two that tell alike neighbours from others without any label.
ALWAYS = ("zero", "mf", "smooth", "trust")
STRATEGIES = {"i": "implicit", "e": "explicit"}


def shortlist(diagnosis: Diagnosis, most: int = 2) -> list[str]:
    """Interventions worth a training: the usual ones, and those that stand highest in the evidence."""
    best = [found.name for found in diagnosis.evidence if found.auc is not None and found.name not in ALWAYS]
    return [*ALWAYS, *best[:most]]


def advice(diagnosis: Diagnosis) -> list[str]:
    """Sentences for a reader, the recommendation last."""
    said = [_about_edges(diagnosis)]
    if diagnosis.random_edges is not None:
        noisy = "the graph looks noisy" if diagnosis.random_edges >= NOISY else "most edges look meant"
        said.append(
            f"About {diagnosis.random_edges:.0%} of the edges join nodes no more alike than random pairs: "
            f"{noisy}."
        )
    said.append(_recommendation(diagnosis))
    return said


def _about_edges(diagnosis: Diagnosis) -> str:
    if diagnosis.homophily is None:
        return "No edge joins two labelled nodes, so labels cannot judge any score."
    same = round(diagnosis.homophily.value * diagnosis.labelled_edges)
    few = min(same, diagnosis.labelled_edges - same) < FEW_EDGES
    doubt = "; too few to be sure of much" if few else ""
    return (
        f"{same} of {diagnosis.labelled_edges} edges between labelled nodes join one class "
        f"({diagnosis.homophily.value:.0%}, by chance {diagnosis.by_chance:.0%}){doubt}."
    )


def _recommendation(diagnosis: Diagnosis) -> str:
    if diagnosis.homophily is not None and diagnosis.homophily.high < 1.2 * diagnosis.by_chance:
        return (
            "Edges say little about the classes here: compare with a classifier that ignores them before "
            "trusting any graph network."
        )
    knowing = [found for found in diagnosis.evidence if found.knows]
    noisy = diagnosis.random_edges is not None and diagnosis.random_edges >= NOISY
    if knowing:
        best = knowing[0].name
        why = (
            f"its score ranks same-class edges first (AUC {knowing[0].auc.value:.2f})"
            if knowing[0].auc
            else ""
        )
        strategy = "e" if noisy else "i"
        return f"Try cat-{strategy}-{best}: {why}; or let validation choose: --intervention auto."
    if noisy:
        return (
            "No score is certain to know the classes, but many edges look random: try spread-trust (what "
            "plain `conjoint train` takes) or cat-e-smooth, or let validation choose: --intervention auto."
        )
    return "No score is certain to know the classes: let validation choose, --intervention auto."
