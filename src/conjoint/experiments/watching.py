"""What the authors' rule would have reported, watched while a run selects by validation alone."""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from ..data.splits import Split
from ..nn.model import NodeModel
from ..training import TrainConfig
from ..training.inputs import batch_of, prepare
from ..training.stopping import Seen, watch

RULE = "release"


@dataclass
class ReleaseWatcher:
    """Pass it to `fit(progress=...)`. It looks at TEST nodes, and never acts on the training.

    The authors' release keeps the best test accuracy among the epochs whose validation loss improved. Both
    rules run out of patience by validation loss, so one training serves both.
    """

    model: NodeModel
    data: Data
    split: Split
    config: TrainConfig
    seen: Seen = field(default_factory=Seen)
    all_accuracy: float = 0.0

    def __post_init__(self) -> None:
        self._inputs = prepare(self.model, self.data, self.config)
        self._test = batch_of(self.split.reveal_test(), self._inputs, self.model, self.config.field)

    @torch.no_grad()
    def __call__(self, row: dict[str, Any]) -> None:
        if row.get("val_loss", self.seen.val_loss) >= self.seen.val_loss:
            return  # not evaluated in this epoch, or no progress: the rule would not look
        self.model.eval()
        out = self.model(self._test.x, self._test.graph)
        test_accuracy = _share_right(self._test.targets(out), self._test.labels)
        self.seen, verdict = watch(RULE, self.seen, row | {"test_accuracy": test_accuracy})
        if verdict.keep:
            whole = self._test.graph is self._inputs.graph  # then all nodes are there already
            self.all_accuracy = self._over_all_nodes(out if whole else None)

    def _over_all_nodes(self, logits: Tensor | None) -> float:
        labelled = self._inputs.y >= 0
        logits = self.model(self._inputs.x, self._inputs.graph) if logits is None else logits
        return _share_right(logits[labelled], self._inputs.y[labelled])

    def report(self) -> dict[str, Any]:
        """Marked for what it is: test nodes took part in choosing the epoch."""
        return {
            "rule": RULE,
            "saw_test": True,
            "best_epoch": self.seen.kept_epoch,
            "test_accuracy": self.seen.test_accuracy,
            "all_accuracy": self.all_accuracy,
        }


def _share_right(logits: Tensor, labels: Tensor) -> float:
    return int((logits.argmax(dim=1) == labels).sum()) / len(labels)
