"""The space of texts: every `str` is in it, and its samples are worth playing.

Owns the one gymnasium type that the text faces add. Length and encoding are no matter of the space: they are judged in
`parsing`, where an unfit text costs the format reward.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from populora_env.config import GameConfig
from populora_env.prompts import ANSWER, INPUT, OUTPUT, PROGRAM
from populora_env.seats import fitting_proposal, random_answer, random_proposal
from populora_env.types import Observation, Role

_PRINTABLE = "".join(map(chr, range(32, 127)))
_JUNK_SHARE = 0.15
_OTHER_ROLE_SHARE = 0.05
_MAX_JUNK = 80
_SCRAPS = (ANSWER, PROGRAM, INPUT, OUTPUT, "```python", "```", "def f(x):", "    return x", "(1,)", "\t", "é", "🙂", "")


class UnicodeText(spaces.Text):
    """Any `str`. Samples mix junk with well-formed proposals and answers, so that random play reaches every phase.

    A `Text` to those who ask (`charset` is only what its own samples of junk are made of), but it can't be flattened
    to numbers: no array holds every text.
    """

    def __init__(
        self,
        config: GameConfig | None = None,
        *,
        role: Role | None = None,
        seed: int | np.random.Generator | None = None,
    ) -> None:
        """Make the space.

        Args:
            config: Rules by which samples are written; None means the default rules.
            role: Whose actions most samples are; None mixes both roles'.
            seed: Root of the samples.
        """
        self.config = GameConfig() if config is None else config
        self.role = role
        self.asked: Observation | None = None
        """What the space's agent is asked now, kept up to date by an environment; well-formed samples then fit it."""
        super().__init__(self.config.max_action_chars, min_length=0, charset=_PRINTABLE, seed=seed)

    @property
    def is_np_flattenable(self) -> bool:
        """False: no array of numbers holds every text."""
        return False

    def contains(self, x: Any) -> bool:
        """Return whether `x` is a `str`; any one will do."""
        return isinstance(x, str)

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """Draw a text: mostly a well-formed action of the space's role, else junk or the other role's action.

        Raises:
            ValueError: A mask or probabilities were given; a text has none.
        """
        if mask is not None or probability is not None:
            raise ValueError("`mask` and `probability` must be None, texts can't be masked")
        rng = self.np_random
        draw = rng.random()
        if draw < _JUNK_SHARE:
            return _junk(rng)
        role = self.role or (Role.PROPOSER if rng.random() < 0.5 else Role.SOLVER)
        proposes = (role is Role.PROPOSER) != (draw < _JUNK_SHARE + _OTHER_ROLE_SHARE)
        if self.asked is not None and proposes and self.asked.role is Role.PROPOSER:
            return fitting_proposal(rng, self.asked, self.config)
        tasks = self.config.tasks if self.asked is None else (self.asked.task,)
        task = tasks[int(rng.integers(len(tasks)))]
        return random_proposal(rng, task, self.config) if proposes else random_answer(rng, task, self.config)

    def __repr__(self) -> str:
        """Return the space's name, and its role where it has one."""
        return f"UnicodeText({'' if self.role is None else self.role})"

    def __eq__(self, other: object) -> bool:
        """Return whether `other` is such a space with samples of the same make."""
        return isinstance(other, UnicodeText) and (self.config, self.role) == (other.config, other.role)


def _junk(rng: np.random.Generator) -> str:
    if rng.random() < 0.5:
        codes = rng.integers(len(_PRINTABLE), size=int(rng.integers(_MAX_JUNK)))
        return "".join(_PRINTABLE[code] for code in codes)
    return "\n".join(_SCRAPS[place] for place in rng.integers(len(_SCRAPS), size=int(rng.integers(1, 6))))
