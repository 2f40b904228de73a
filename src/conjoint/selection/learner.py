"""From a graph to trained networks: the one path behind `conjoint train`, the estimators and `learn`."""

import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from ..benchmark_files import BENCHMARKS
from ..data import from_any, load_graph, read_graph
from ..graph.folder import is_graph_folder, open_folder
from ..graph.graph import Graph, as_graph
from ..graph.splits import SPLITS, Split, usual_split
from ..nn import zoo
from ..threads import LARGE
from ..training import Fitted, ModelSpec, Ranks, Run, alone, fit, load_run
from ..training.closed_form import CLOSED_FORMS
from ..training.config import batch_config_from
from ..training.loop import OnEpoch
from ..training.loss import class_factors
from ..training.memory import USABLE, available_memory, choose_way, full_memory
from ..training.stopping import snapshot
from .all_labels import check_rule, learn_from_all
from .choose import CHOOSE, Choice, Trial, Watch
from .folds import judging_split
from .member_training import train_model
from .members import MEMBERS, Budget, Member, with_settings
from .portfolio import JUDGED, encode_judged, read_portfolio
from .search import learn_ensemble
from .setting import Setting, make_setting
from .side_by_side import possible
from .trained import Trained, Trainings

IN_BATCHES = ("clusters", "neighbours")
PORTFOLIO, INTERRUPTED = "portfolio.json", "interrupted"


def train_graph(
    graph: Graph,
    *,
    split: Split | str | Mapping[str, Any] | None = None,
    seed: int = 0,
    seeds: int = 1,
    model: str | None = None,
    intervention: str | None = None,
    strategy: str | None = None,
    settings: Mapping[str, Any] | None = None,
    train: Mapping[str, Any] | None = None,
    batch: Mapping[str, Any] | None = None,
    metric: str | None = None,
    minutes: float | None = None,
    trials: int | None = None,
    single: bool = False,
    progress: OnEpoch | None = None,
    verbose: int = 0,
) -> Trainings:
    """Train on a graph, as `conjoint train` does. The arguments are those of `conjoint.learn`."""
    setting = make_setting(
        model,
        intervention=intervention,
        strategy=strategy,
        settings=settings,
        train=train,
        batch=batch,
        search=search_options(metric, minutes, trials, single),
    )
    graph = zoo.input_graph(setting.model, graph, **setting.settings)

    def split_for(run_seed: int) -> Split:
        if isinstance(split, Split):
            return split
        return split_of(graph, split_options(split), run_seed)

    setting, _ = settle(setting, graph, split_for(seed))
    setting, choice = decide(setting, graph, split_for(seed), seed)
    if verbose > 1 or (verbose and not setting.is_ensemble):
        progress = _printing(progress, 10 if verbose == 1 else 1)
    told: dict[str, Any] = {"progress": progress, "watch": watching(progress)}
    told |= {"tell": print if verbose else None, "aside": progress is None}  # it may end a training
    trained = [
        train_one(setting, graph, split_for(one), one, choice=choice, **told)
        for one in range(seed, seed + seeds)
    ]
    return Trainings(graph, setting, tuple(trained), choice)


def split_options(split: str | Mapping[str, Any] | None) -> dict[str, Any]:
    """A split's name, or its options, as `split_of` takes them."""
    return {"name": split} if isinstance(split, str) else dict(split or {})


def _printing(progress: OnEpoch | None, every: int) -> OnEpoch:
    """The same, and a line for each epoch, or each of so many."""

    def show(row: dict[str, Any]) -> object:
        if row["epoch"] % every == 0:
            told = {
                name: f"{value:.4g}" if isinstance(value, float) else value for name, value in row.items()
            }
            print(", ".join(f"{name} {value}" for name, value in told.items()))
        return None if progress is None else progress(row)

    return show


def watching(progress: OnEpoch | None) -> Watch | None:
    """The epochs of each of several trainings, told with the name of the training that they belong to."""
    if progress is None:
        return None
    return lambda title, epochs: nullcontext(lambda row: progress({"training": title, **row}))


def graph_from(data: Any, nodes: Any = None, **columns: Any) -> Graph:
    """A graph from whatever names or holds one."""
    if not isinstance(data, str | Path):
        plain = nodes is None and not columns
        return as_graph(data) if plain and hasattr(data, "edge_index") else from_any(data, nodes, **columns)
    if str(data).removesuffix("-release") in BENCHMARKS:
        return load_graph(str(data), **columns)
    if is_graph_folder(data):
        return open_folder(data)
    return read_graph(data, nodes, **columns)


def search_options(
    metric: str | None, minutes: float | None, trials: int | None, single: bool
) -> dict[str, Any]:
    """What was asked of the search, defaults left out."""
    given = {"metric": metric, "minutes": minutes, "trials": trials, "single": single}
    return {name: value for name, value in given.items() if value is not None and value is not False}


def split_of(graph: Graph, options: Mapping[str, Any], run_seed: int) -> Split:
    """The split that the options name; with `resplit`, a new one for each seed of the training."""
    chosen = dict(options)
    if chosen.pop("resplit", False):
        chosen["seed"] = run_seed
    name = chosen.pop("name", None) or _rule_with(chosen) or usual_split(graph)
    return graph.split(name, **chosen)


def _rule_with(options: Mapping[str, Any]) -> str | None:
    """The rule whose own options were given."""
    return next((name for name, has in SPLITS.items() for option in has if option in options), None)


def settle(setting: Setting, graph: Graph, split: Split) -> tuple[Setting, str | None]:
    """The setting with what a step computes: as it says, or chosen by memory. The second tells of the choice.

    A setting without `batch` is for the full graph or the receptive field.
    """
    class_factors(
        graph, split.train, setting.train.get("class_weight")
    )  # a class that is not there, told early
    check_rule(setting.config(0), split)
    kind = setting.batch.get("kind", "auto")
    if kind in IN_BATCHES:
        return setting, None
    if setting.is_ensemble:
        return _fitting(setting, graph, split)
    if kind != "auto":
        field = {"full": "whole", "field": "receptive"}[kind]
        return replace(setting, train={**setting.train, "field": field}, batch={}), None
    if graph.edge_weight is not None or setting.train.get("field", "auto") != "auto":
        return replace(setting, batch={}), None
    parts = graph, split.train.numpy(), judging_split(graph, split).val.numpy()
    made = choose_way(setting.model, setting.settings, *parts, consistency=setting.config(0).consistency)
    batch = {**setting.batch, "kind": made.kind} if made.kind in IN_BATCHES else {}
    # What does not fit as a whole is cut, also where cutting would not save time.
    cut = made.kind == "field" and made.must
    train = {**setting.train, "field": "receptive"} if cut else setting.train
    return replace(setting, train=train, batch=batch), str(made)


def _fitting(setting: Setting, graph: Graph, split: Split) -> tuple[Setting, str | None]:
    """An ensemble if one of its conjoint networks fits into memory, else attention in batches."""
    members = with_settings(MEMBERS, setting.settings, {})
    if not any(member.conjoint for member in members if fits(member, graph)):
        return settle(setting.attention_instead(), graph, split)
    return replace(setting, batch={}), None


def memory_of(member: Member, graph: Graph) -> int:
    """Bytes that training a member on the full graph takes, where that is much."""
    if member.kind != "network":
        return 0
    passes = int(member.train.get("consistency", {}).get("passes", 1))
    return full_memory(member.model, member.settings, graph, passes)


def fits(member: Member, graph: Graph) -> bool:
    """Whether memory suffices for training a member on the full graph."""
    return memory_of(member, graph) <= USABLE * available_memory()


def at_a_time(members: Sequence[Member], graph: Graph) -> int:
    """How many members to train side by side, a thread each: as many as there are threads and memory for.
    On a large graph one training is worth all threads."""
    if graph.num_nodes >= LARGE or not possible():
        return 1
    need = max(1, *(memory_of(member, graph) for member in members))
    return max(1, min(torch.get_num_threads(), int(USABLE * available_memory() / need)))


def decide(
    setting: Setting,
    graph: Graph,
    split: Split,
    seed: int,
    *,
    on_trial: Callable[[Trial], None] | None = None,
    watch: Watch | None = None,
    known: Sequence[Trial] = (),
) -> tuple[Setting, Choice | None]:
    """The setting with the model that validation nodes choose, where that was left to them."""
    if setting.undecided is None:
        return setting, None
    choose = CHOOSE[setting.undecided]
    seen: dict[str, Any] = {"on_trial": on_trial, "watch": watch, "known": known}
    choice = choose(graph, judging_split(graph, split), setting.config(seed), setting.settings, **seen)
    return setting.decided(choice.model), choice


def spec_of(setting: Setting, graph: Graph) -> ModelSpec:
    settings = {} if setting.is_ensemble else dict(setting.settings)
    return ModelSpec(setting.model, graph.num_features, graph.num_classes, graph.num_nodes, settings)


def train_one(
    setting: Setting,
    graph: Graph,
    split: Split,
    seed: int,
    *,
    choice: Choice | None = None,
    run: Run | None = None,
    device: str = "cpu",
    ranks: Ranks = alone,
    workers: int = 0,
    progress: OnEpoch | None = None,
    tell: Callable[[str], None] | None = None,
    watch: Watch | None = None,
    aside: bool = True,
) -> Trained:
    """Train with one seed, unless that was done while the model was chosen. A split without validation nodes
    asks for all labels: an ensemble's folds, or two trainings, of which `watch` is told.

    `aside`: members of an ensemble may be trained in other processes; `watch` is then told, not asked.
    """
    if setting.is_ensemble:
        return train_ensemble(setting, graph, split, seed, run=run, tell=tell, watch=watch, aside=aside)
    config = setting.config(seed)
    batch = batch_config_from(setting.batch) if setting.batch else None
    done, seconds = (None, 0.0) if choice is None else choice.fitted.get(seed, (None, 0.0))
    if not split.val.numel():
        started, spec = time.perf_counter() - seconds, spec_of(setting, graph)
        parts: dict[str, Any] = {
            "spec": spec,
            "batches": batch,
            "ranks": ranks,
            "workers": workers,
            "run": run,
        }
        found = learn_from_all(
            lambda: spec.build(seed).to(device), graph, split, config, watch=watch, first=done, **parts
        )
        return Trained(found[0], graph, split, time.perf_counter() - started, batch, None, *found[1:])
    if done is not None:
        if run is not None:
            run.adopt(done.history, snapshot(done.model), done.result())
        return Trained(done, graph, split, seconds, batch, None, spec_of(setting, graph))
    started = time.perf_counter()
    spec = spec_of(setting, graph)
    if spec.name in CLOSED_FORMS:
        fitted, settings = train_model(spec, graph, split, config, run=run)
        spec = replace(spec, settings=settings)
        return Trained(fitted, graph, split, time.perf_counter() - started, None, None, spec)
    parts = {"batches": batch, "ranks": ranks, "workers": workers}
    fitted = fit(spec.build(seed).to(device), graph, split, config, **parts, progress=progress, run=run)
    return Trained(fitted, graph, split, time.perf_counter() - started, batch, None, spec)


def members_of(setting: Setting, graph: Graph) -> list[Member]:
    """The members as the setting asks for them. One that cannot be built is told before any is trained."""
    members = with_settings(MEMBERS, setting.settings, setting.train)
    for member in members if setting.settings else ():
        replace(spec_of(setting, graph), name=member.model, settings=dict(member.settings)).build(0)
    return members


def train_ensemble(
    setting: Setting,
    graph: Graph,
    split: Split,
    seed: int,
    *,
    run: Run | None = None,
    tell: Callable[[str], None] | None = None,
    watch: Watch | None = None,
    aside: bool = True,
) -> Trained:
    """Learn an ensemble. In a run folder, trainings are kept as they come; finished ones are used again."""
    started = time.perf_counter()
    if run is not None and run.sidecar.finished and (run.sidecar.result or {}).get("stopped") != INTERRUPTED:
        model, _ = load_run(run.path)
        portfolio = read_portfolio(run.path / PORTFOLIO)
        row = run.history(1)[0]
        fitted = Fitted(model, run.config, [row], 1, "epochs")
        return Trained(fitted, graph, split, row["seconds"], None, portfolio, run.spec)
    asked = members_of(setting, graph)
    members = [member for member in asked if fits(member, graph)]
    if len(members) < len(asked) and tell is not None:
        large = "; ".join(member.name for member in asked if member not in members)
        tell(f"memory would not suffice for {large}: left out")
    options: dict[str, Any] = {
        "metric": setting.search.get("metric", "accuracy"),
        "single": bool(setting.search.get("single")),
        "budget": Budget(setting.search.get("minutes"), setting.search.get("trials")),
        "members": members,
        "tell": tell,
        "watch": watch,
        "processes": at_a_time(members, graph) if aside else 1,
    }
    with nullcontext() if run is None else run.training():
        folder = None if run is None else run.path / "members"
        ensemble, settings, portfolio = learn_ensemble(graph, split, seed, folder=folder, **options)
        seconds = round(time.perf_counter() - started, 3)
        loss = {"val_loss": portfolio.estimate["log-loss"], "val_accuracy": portfolio.estimate["accuracy"]}
        row = {"epoch": 1, **loss, "seconds": seconds}
        stopped = INTERRUPTED if portfolio.interrupted else "epochs"
        fitted = Fitted(ensemble, setting.config(seed), [row], 1, stopped)
        spec = replace(spec_of(setting, graph), settings=settings)
        trained = Trained(fitted, graph, split, seconds, None, portfolio, spec)
        if run is not None:
            keep_training(run, trained)
            if not portfolio.interrupted:
                shutil.rmtree(run.path / "members", ignore_errors=True)
    return trained


def keep_training(run: Run, trained: Trained) -> None:
    """A training that is over, and how its ensemble came about, for who holds the folder."""
    assert trained.spec is not None
    run.sidecar = replace(run.sidecar, model=trained.spec)
    portfolio, fitted, judged = trained.portfolio, trained.fitted, trained.held_out
    if portfolio is not None:
        run.write(PORTFOLIO, (json.dumps(portfolio.to_dict(), indent=1, allow_nan=False) + "\n").encode())
        judged = portfolio.judged
    if judged is not None:
        run.write(JUDGED, encode_judged(judged))
    run.keep(fitted.history, snapshot(fitted.model), fitted.result())
