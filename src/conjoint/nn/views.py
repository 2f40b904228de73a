"""How much each of several interventions counts in a layer: learnt, and never negative."""

import torch
from torch import Tensor, nn

from .attention import Structure

# Adam moves any parameter by about its rate per step, whatever the gradient. Three times that lets a view
# that knows nothing fall to a few percent before the network has learnt its training nodes by heart.
SPEED = 3.0


class ViewWeights(nn.Module):
    """One weight per intervention, and per head where strategies mix.

    Implicit (and structural): shares of r_s, from a softmax per head, so that with (r_f, r_s) of Eq. 6 the
    attentions of features and of k interventions have k + 1 weights of sum 1. Explicit: factors of the
    scores, starting at 1; a score that misleads can be turned down to nothing, but none can be turned around.
    These are one per layer: the few labels tell all heads together what they cannot tell one.
    """

    def __init__(self, count: int, groups: int, explicit: bool) -> None:
        super().__init__()
        self.explicit = explicit
        self.logit = nn.Parameter(torch.empty(1 if explicit else groups, count))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.zeros_(self.logit)

    @property
    def weight(self) -> Tensor:
        """[groups, k]"""
        logit = SPEED * self.logit
        return logit.exp() if self.explicit else logit.softmax(dim=-1)

    def join(self, structure: Structure) -> Structure:
        """One score or one attention per head in place of one per intervention."""
        if structure.score.dim() == 1:  # given from outside, joined already
            return structure
        return structure.added(self.weight) if self.explicit else structure.mixed(self.weight)

    def extra_repr(self) -> str:
        return f"{self.logit.size(1)} interventions, {'factors' if self.explicit else 'shares'}"
