"""What the authors' rule would have reported, watched while a run selects by validation alone."""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch_geometric.data import Data

from ..data.splits import Split
from ..nn.model import NodeModel
from ..training import TrainConfig
from ..training.inputs import prepare
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
        self._test = self.split.reveal_test().to(self._inputs.y.device)
        self._labelled = self._inputs.y >= 0

    @torch.no_grad()
    def __call__(self, row: dict[str, Any]) -> None:
        if row.get("val_loss", self.seen.val_loss) >= self.seen.val_loss:
            return  # not evaluated in this epoch, or no progress: the rule would not look
        self.model.eval()
        right = self.model(self._inputs.x, self._inputs.graph).argmax(dim=1) == self._inputs.y
        test_accuracy = int(right[self._test].sum()) / len(self._test)
        self.seen, verdict = watch(RULE, self.seen, row | {"test_accuracy": test_accuracy})
        if verdict.keep:
            self.all_accuracy = int(right[self._labelled].sum()) / int(self._labelled.sum())

    def report(self) -> dict[str, Any]:
        """Marked for what it is: test nodes took part in choosing the epoch."""
        return {
            "rule": RULE,
            "saw_test": True,
            "best_epoch": self.seen.kept_epoch,
            "test_accuracy": self.seen.test_accuracy,
            "all_accuracy": self.all_accuracy,
        }
