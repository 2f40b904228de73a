"""What to train on a graph, told by validation nodes alone."""

from .choose import Choice, Trial, choose_intervention
from .diagnosis import Diagnosis, diagnose
from .learner import train_graph
from .portfolio import Portfolio
from .search import learn_ensemble
from .setting import Setting, make_setting
from .trained import Trainings

__all__ = [
    "Choice",
    "Diagnosis",
    "Portfolio",
    "Setting",
    "Trainings",
    "Trial",
    "choose_intervention",
    "diagnose",
    "learn_ensemble",
    "make_setting",
    "train_graph",
]
