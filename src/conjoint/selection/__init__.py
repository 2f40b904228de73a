"""What to train on a graph, told by validation nodes alone."""

from .choose import Choice, Trial, choose_intervention, choose_recommended
from .diagnosis import Diagnosis, diagnose
from .learner import Learned, learn
from .setting import Setting, make_setting

__all__ = [
    "Choice",
    "Diagnosis",
    "Learned",
    "Setting",
    "Trial",
    "choose_intervention",
    "choose_recommended",
    "diagnose",
    "learn",
    "make_setting",
]
