"""What a seat of the token face sees, as one vector of fixed size.

Owns the layout and the codes. A token is told by the six bits of its number and, for digits, the digit over 9: one
linear unit can pick out any token at any place (the bits are corners of a cube), at an eighth of a one-hot's width, and
digits keep their order. What tells most of the next action is one-hot: role, task, stage, and the slot that the next
token fills. Values have places of their own, so that what is at a place does not depend on what was before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from populora_env.config import GameConfig
from populora_env.token_grammar import DIGITS, N_TOKENS, Slot
from populora_env.token_printing import Tokens
from populora_env.types import Role, Task

Vector = npt.NDArray[np.float32]

LITERAL_TOKENS: Final = 16
"""Most tokens of a literal that is shown: inputs are never longer, longer outputs are cut there."""

_BITS = 6
CODE_SIZE: Final = _BITS + 1
CODES: Final[Vector] = np.array(
    [
        [(token >> bit) & 1 for bit in range(_BITS)] + [DIGITS.index(token) / 9 if token in DIGITS else 0.0]
        for token in range(N_TOKENS)
    ],
    dtype=np.float32,
)
"""float32 [N_TOKENS, CODE_SIZE] in [0, 1]; zeros stand for no token."""

_ROLES, _TASKS, _SLOTS = tuple(Role), tuple(Task), tuple(Slot)
STAGES: Final = ("propose", "attempt", "over")
"""What a round waits for."""
_STAGE_AT = len(_ROLES) + len(_TASKS)
_WRITES_AT = _STAGE_AT + len(STAGES)
_PROGRESS_AT, _LEFT_AT, _SLOT_AT = _WRITES_AT + 1, _WRITES_AT + 2, _WRITES_AT + 3
_OWN_AT = _SLOT_AT + len(_SLOTS)
_PLACE_OF_SLOT = {slot: _SLOT_AT + place for place, slot in enumerate(_SLOTS)}


@dataclass(frozen=True, slots=True)
class Shown:
    """What a seat is shown in a round; None for a value that has no tokens."""

    program: Tokens = ()
    pairs: Sequence[tuple[Tokens | None, Tokens | None]] = ()
    """Inputs and outputs; an empty one is asked for, not shown."""
    hint: int = 0
    others: Sequence[tuple[Tokens, tuple[Tokens | None, Tokens | None]]] = ()
    """References after the first: program, and input with output."""


class Layout:
    """Where what stands in the vectors of a game, and how large they are.

    `[role 2 | task 3 | stage 3 | writes 1 | progress 1 | left 1 | slot | own tokens | hint | program | pairs | others]`
    """

    def __init__(self, config: GameConfig, max_tokens: int) -> None:
        """Lay out the vectors for these rules and at most `max_tokens` tokens of each derivation."""
        self.max_tokens = max_tokens
        self.literal_tokens = min(LITERAL_TOKENS, max_tokens)
        self.pairs = config.visible_inputs if Task.INDUCTION in config.tasks else 1
        self.others = max(0, config.references - 1)
        row, value = max_tokens * CODE_SIZE, 1 + self.literal_tokens * CODE_SIZE
        self._hint_at = _OWN_AT + row
        self._program_at = self._hint_at + CODE_SIZE
        self._pairs_at = self._program_at + row
        self._others_at = self._pairs_at + 2 * self.pairs * value
        self._row, self._value = row, value
        self.size = self._others_at + self.others * (row + 2 * value)
        """Numbers in a vector."""

    def blank(self, role: Role) -> Vector:
        """Return a vector that tells nothing but the role."""
        vector: Vector = np.zeros(self.size, dtype=np.float32)
        vector[_ROLES.index(role)] = 1.0
        return vector

    def set_round(self, vector: Vector, *, task: Task, stage: str, progress: float) -> None:
        """Tell what round it is: its task, what it waits for, and the share of rounds played."""
        vector[len(_ROLES) : _WRITES_AT] = 0.0
        vector[len(_ROLES) + _TASKS.index(task)] = 1.0
        vector[_STAGE_AT + STAGES.index(stage)] = 1.0
        vector[_PROGRESS_AT] = progress

    def set_turn(self, vector: Vector, slot: Slot, left: int) -> None:
        """Tell that the seat writes, what its next token fills, and the share of tokens that are left."""
        vector[_WRITES_AT] = 1.0
        vector[_LEFT_AT] = left / self.max_tokens
        vector[_PLACE_OF_SLOT[slot]] = 1.0

    def add_token(self, vector: Vector, place: int, token: int, filled: Slot, slot: Slot, left: int) -> None:
        """Tell the token that was chosen at a place of the own derivation, and what comes next."""
        at = _OWN_AT + place * CODE_SIZE
        vector[at : at + CODE_SIZE] = CODES[token]
        vector[_LEFT_AT] = left / self.max_tokens
        vector[_PLACE_OF_SLOT[filled]] = 0.0
        vector[_PLACE_OF_SLOT[slot]] = 1.0

    def clear_turn(self, vector: Vector) -> None:
        """Tell that the seat waits; nothing stays of what it wrote."""
        vector[_WRITES_AT] = vector[_LEFT_AT] = 0.0
        vector[_SLOT_AT : self._hint_at] = 0.0

    def shown(self, shown: Shown) -> Vector:
        """Return the part of a vector that tells what a seat is shown, for `set_shown`."""
        start = self._hint_at
        part: Vector = np.zeros(self.size - start, dtype=np.float32)
        part[:CODE_SIZE] = CODES[shown.hint]
        self._put(part, self._program_at - start, shown.program)
        for place, pair in enumerate(shown.pairs):
            self._put_pair(part, self._pairs_at - start + 2 * place * self._value, pair)
        for place, (program, pair) in enumerate(shown.others):
            at = self._others_at - start + place * (self._row + 2 * self._value)
            self._put(part, at, program)
            self._put_pair(part, at + self._row, pair)
        return part

    def set_shown(self, vector: Vector, part: Vector | float) -> None:
        """Tell what `shown` made; 0.0 clears it."""
        vector[self._hint_at :] = part

    def _put_pair(self, part: Vector, at: int, pair: tuple[Tokens | None, Tokens | None]) -> None:
        """Write two values, each as its length over `literal_tokens`, at most 1, and its first tokens."""
        for place, tokens in enumerate(pair):
            if tokens:
                start = at + place * self._value
                part[start] = min(1.0, len(tokens) / self.literal_tokens)
                self._put(part, start + 1, tokens[: self.literal_tokens])

    def _put(self, part: Vector, at: int, tokens: Tokens) -> None:
        if tokens:
            part[at : at + len(tokens) * CODE_SIZE] = CODES[list(tokens)].reshape(-1)
