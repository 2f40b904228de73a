"""scikit-learn's own list of what an estimator must do: the default, an ensemble, and conjoint attention."""

import warnings
from typing import Any

from sklearn.exceptions import SkipTestWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from blocks import QUICK
from conjoint import CATClassifier, CATClusterer

# Every check that does not apply, and why.
A_ROW_IS_A_NODE = (
    "a row that is repeated is another node of the graph, and one without weight is still a node"
)
NOT_APPLICABLE = {
    "CATClassifier": {
        "check_classifiers_classes": "it uses -1 as a class, which here, as in semi_supervised, is no label",
        "check_sample_weight_equivalence_on_dense_data": A_ROW_IS_A_NODE,
        "check_sample_weight_equivalence_on_sparse_data": A_ROW_IS_A_NODE,
    },
    "CATClusterer": {},
}
# The checks fit some fifty times: few epochs at a high rate, few trainings. The estimators are otherwise as
# they are.
TRAINING: dict[str, Any] = {"epochs": 5, "lr": 0.2, "random_state": 0}
FEW = TRAINING | {"trials": 2}
SMALL = QUICK | TRAINING | {"intervention": "mf"}


@parametrize_with_checks(
    [CATClassifier(**FEW), CATClusterer(**FEW), CATClassifier(**SMALL), CATClusterer(**SMALL)],
    expected_failed_checks=lambda estimator: NOT_APPLICABLE[type(estimator).__name__],
)
def test_scikit_learn_contract(estimator: Any, check: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # the checks provoke warnings on purpose
        warnings.simplefilter("ignore", SkipTestWarning)
        check(estimator)
