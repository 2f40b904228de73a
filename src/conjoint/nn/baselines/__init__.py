"""The networks that conjoint attention is compared with, composed from PyG's layers."""

from .arma import ARMA, ARMASettings
from .defences import GCNSVD, GCNJaccardSettings, GCNSVDSettings, Pruning
from .gcn import GCN, GCNSettings, JKNet, JKNetSettings
from .gin import GIN, GINSettings
from .monet import MoNet, MoNetSettings
from .propagation import APPNP, SGC, APPNPSettings, SGCSettings
from .sage import SAGE, SAGESettings
from .settings import Settings

__all__ = [
    "APPNP",
    "ARMA",
    "GCN",
    "GCNSVD",
    "GIN",
    "SAGE",
    "SGC",
    "APPNPSettings",
    "ARMASettings",
    "GCNJaccardSettings",
    "GCNSVDSettings",
    "GCNSettings",
    "GINSettings",
    "JKNet",
    "JKNetSettings",
    "MoNet",
    "MoNetSettings",
    "Pruning",
    "SAGESettings",
    "SGCSettings",
    "Settings",
]
