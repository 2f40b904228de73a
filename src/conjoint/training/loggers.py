"""Each epoch's numbers for other tools to show: `fit(..., progress=log)` with a log of this module.

with logger("tensorboard:logs", "cora gat") as log:
    fit(model, graph, split, config, progress=log)
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from pathlib import Path

from ..errors import InputError
from ..text import file_name
from .loop import OnEpoch
from .steps import Row


@contextmanager
def tensorboard(folder: str, title: str) -> Iterator[OnEpoch]:
    """Scalars of one training, in a folder of its own: `tensorboard --logdir FOLDER` shows all of them."""
    from torch.utils.tensorboard import SummaryWriter  # an extra, and slow to import

    with SummaryWriter(Path(folder) / file_name(title)) as writer:

        def log(row: Row) -> None:
            for name, number in numbers(row):
                writer.add_scalar(name, number, row["epoch"])

        yield log


@contextmanager
def mlflow(folder: str, title: str) -> Iterator[OnEpoch]:
    """A run of the experiment "conjoint" in FOLDER/mlflow.db: `mlflow ui --backend-store-uri` shows it."""
    from mlflow import MlflowClient  # an extra, and slow to import

    Path(folder).mkdir(parents=True, exist_ok=True)
    client = MlflowClient(f"sqlite:///{Path(folder).absolute()}/mlflow.db")
    known = client.get_experiment_by_name("conjoint")
    experiment = known.experiment_id if known else client.create_experiment("conjoint")
    run, status = client.create_run(experiment, run_name=title).info.run_id, "FAILED"

    def log(row: Row) -> None:
        for name, number in numbers(row):
            client.log_metric(run, name, number, step=row["epoch"])

    try:
        yield log
        status = "FINISHED"
    finally:
        client.set_terminated(run, status)


LOGGERS: dict[str, Callable[[str, str], AbstractContextManager[OnEpoch]]] = {
    "tensorboard": tensorboard,
    "mlflow": mlflow,
}


def check_log(where: str) -> tuple[str, str]:
    """TOOL:FOLDER -> the tool, which is there, and the folder."""
    name, _, folder = where.partition(":")
    if name not in LOGGERS or not folder:
        raise InputError(f"--log {where}: write TOOL:FOLDER, where TOOL is {' or '.join(LOGGERS)}")
    if find_spec(name) is None:
        raise InputError(f"--log {where}: {name} is not installed; pip install conjoint[{name}]")
    return name, folder


@contextmanager
def logger(where: str, title: str) -> Iterator[OnEpoch]:
    """The log that `where` names, for one training called `title`."""
    name, folder = check_log(where)
    with LOGGERS[name](folder, title) as log:
        yield log


def numbers(row: Row) -> list[tuple[str, float]]:
    return [(name, float(x)) for name, x in row.items() if type(x) in (int, float) and name != "epoch"]
