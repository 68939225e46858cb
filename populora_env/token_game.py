"""An episode spoken in tokens: the game, and for each seat its derivation, its mask and its vector.

Owns who writes when and what each seat sees. Rules are `game`'s: a finished derivation is written by the prompt style
and handed to the round as text. Owns no verifier: whoever drives it has the round judged. Knows nothing of PettingZoo.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from populora_env.config import GameConfig
from populora_env.game import Game, Phase, RoundResult
from populora_env.prompts import get_style
from populora_env.token_derivation import (
    NOTHING_TO_DO,
    Derivation,
    derive_inputs_and_hint,
    derive_literal,
    derive_program,
    derive_program_and_input,
    least_budget,
)
from populora_env.token_grammar import TAKES
from populora_env.token_observation import Layout, Shown, Vector
from populora_env.token_printing import (
    HINT_WORDS,
    Program,
    Tokens,
    argument_text,
    literal_value,
    print_program,
    read_argument,
    read_hint,
    read_literal,
)
from populora_env.token_rules import Mask
from populora_env.token_seeds import Seeds, seeded_buffer
from populora_env.types import Answer, Problem, Proposal, Role, Task

PROPOSER_SEAT = 0
"""Place of the proposer; the solvers follow."""


@dataclass(frozen=True, slots=True)
class TokenRules:
    """Rules of the game, and how much may be written in tokens."""

    config: GameConfig
    max_tokens: int
    """Most tokens of one derivation: a proposal or an answer."""
    together: bool
    """Whether the solvers write at the same time, or one after the other."""
    layout: Layout = field(init=False)

    def __post_init__(self) -> None:
        """Check that everything can be written."""
        least = least_budget(self.config.induction_inputs if Task.INDUCTION in self.config.tasks else 1)
        if self.max_tokens < least:
            raise ValueError(f"`max_tokens` must be at least {least} under these rules, got {self.max_tokens!r}")
        object.__setattr__(self, "layout", Layout(self.config, self.max_tokens))

    @property
    def seeds(self) -> Seeds:
        """The problems with which every game begins."""
        return seeded_buffer(self.config, budget=self.max_tokens, room=self.layout.literal_tokens)


@dataclass(slots=True)
class _Seat:
    """One seat: what it writes, None while it waits, and what it sees."""

    vector: Vector
    derivation: Derivation | None = None
    mask: Mask = field(default_factory=lambda: NOTHING_TO_DO)
    text: str | None = None
    """The finished answer, until all have answered."""


class TokenGame:
    """An episode. Drive it with `choose`; when a seat has finished, have `game.round` judged, then `proceed`."""

    def __init__(
        self, rules: TokenRules, seed: int, *, on_settled: Callable[[RoundResult], None] | None = None
    ) -> None:
        """Open the first round; `seed` and `on_settled` as for `Game`."""
        self.rules = rules
        self.game = Game(rules.config, seed, buffer=rules.seeds.buffer.copy(), on_settled=on_settled)
        self._programs: dict[str, Program] = {}
        layout = rules.layout
        self.seats = [_Seat(layout.blank(Role.PROPOSER))]
        self.seats += [_Seat(layout.blank(Role.SOLVER)) for _ in range(rules.config.solver_seats)]
        self._open()

    @property
    def writing(self) -> list[int]:
        """Seats that have to choose a token, in their order; empty when the game is over."""
        return [place for place, seat in enumerate(self.seats) if seat.derivation is not None]

    def choose(self, place: int, token: int) -> bool:
        """Take a seat's action. One that is not legal ends what it writes as malformed; who waits may choose anything.

        Args:
            place: The seat, `PROPOSER_SEAT` or a solver's.
            token: The action, in 0..N_TOKENS - 1.

        Returns:
            Whether the seat has finished what it wrote by this token.
        """
        seat = self.seats[place]
        derivation = seat.derivation
        if derivation is None:
            return False
        if not seat.mask[token]:
            self._finish(place, "")
            return True
        filled, at = derivation.slot, derivation.n_tokens
        derivation.choose(token)
        seat.mask = derivation.mask
        slot = derivation.slot
        if slot is None or filled is None:
            self._finish(place, self._written(place, derivation))
            return True
        self.rules.layout.add_token(seat.vector, at, token, filled, slot, derivation.left)
        return False

    def proceed(self) -> RoundResult | None:
        """Go on once nothing waits for the judge: let the solvers begin, or return how the round ended."""
        current = self.game.round
        if current.settled:
            result = self.game.advance()
            self._open()
            return result
        if current.phase is Phase.ATTEMPT and not self.writing:
            self._begin_attempts()
        return None

    def _open(self) -> None:
        """Begin the next round, or end the game."""
        current, layout = self.game.round, self.rules.layout
        over = self.game.over
        self._tell_round("over" if over else "propose")
        for seat in self.seats[1:]:
            layout.set_shown(seat.vector, 0.0)
        layout.set_shown(self.seats[PROPOSER_SEAT].vector, 0.0 if over else layout.shown(self._references()))
        if over:
            return
        budget, room = self.rules.max_tokens, layout.literal_tokens
        if current.task is Task.INDUCTION:
            takes = self._program(current.references[0]).takes
            self._begin(PROPOSER_SEAT, derive_inputs_and_hint(takes, self.rules.config.induction_inputs, budget, room))
        else:
            self._begin(PROPOSER_SEAT, derive_program_and_input(budget, room))

    def _begin_attempts(self) -> None:
        layout = self.rules.layout
        self._tell_round("attempt")
        part = layout.shown(self._problem())
        for seat in self.seats[1:]:
            layout.set_shown(seat.vector, part)
        for place in range(1, len(self.seats) if self.rules.together else 2):
            self._begin(place, self._answer())

    def _begin(self, place: int, derivation: Derivation) -> None:
        seat, slot = self.seats[place], derivation.slot
        seat.derivation, seat.mask = derivation, derivation.mask
        if slot is not None:
            self.rules.layout.set_turn(seat.vector, slot, derivation.left)

    def _finish(self, place: int, text: str) -> None:
        """End what a seat writes, and give it to the round; answers only when all are there."""
        seat = self.seats[place]
        seat.derivation, seat.mask = None, NOTHING_TO_DO
        self.rules.layout.clear_turn(seat.vector)
        if place == PROPOSER_SEAT:
            self.game.round.propose(text)
            return
        seat.text = text
        if not self.rules.together and place + 1 < len(self.seats):
            self._begin(place + 1, self._answer())
        texts = [each.text for each in self.seats[1:] if each.text is not None]
        if len(texts) == self.rules.config.solver_seats:
            for each, answer in zip(self.seats[1:], texts, strict=True):
                self.game.round.attempt(answer)
                each.text = None

    def _written(self, place: int, derivation: Derivation) -> str:
        """Return the text that a finished derivation stands for."""
        task, style = self.game.round.task, get_style(self.rules.config.style)
        if place == PROPOSER_SEAT:
            return style.write_proposal(self._proposal(derivation))
        program = self._posed()
        (tokens,) = derivation.done
        if task is Task.DEDUCTION:
            text = repr(literal_value(tokens, program.gives))
        elif task is Task.ABDUCTION:
            text = argument_text(tokens, program.takes)
        else:
            text = print_program((TAKES[program.takes], *tokens)).text
        return style.write_answer(Answer(task=task, text=text))

    def _proposal(self, derivation: Derivation) -> Proposal:
        current = self.game.round
        if current.task is Task.INDUCTION:
            program = self._program(current.references[0])
            *literals, hint = derivation.done
            inputs = tuple(argument_text(literal, program.takes) for literal in literals)
            return Proposal(task=current.task, program=program.text, inputs=inputs, message=HINT_WORDS[hint[0]])
        tokens, literal = derivation.done
        program = print_program(tokens)
        self._programs[program.text] = program
        return Proposal(task=current.task, program=program.text, inputs=(argument_text(literal, program.takes),))

    def _answer(self) -> Derivation:
        """Begin an answer; its type can be told from what the solver is shown."""
        task, program, budget = self.game.round.task, self._posed(), self.rules.max_tokens
        if task is Task.INDUCTION:
            return derive_program(program.takes, program.gives, budget)
        return derive_literal(program.gives if task is Task.DEDUCTION else program.takes, budget)

    def _posed(self) -> Program:
        problem = self.game.round.problem
        if problem is None:
            raise RuntimeError("there is no problem to answer")
        return self._program(problem)

    def _program(self, problem: Problem) -> Program:
        found = self._programs.get(problem.program)
        return self.rules.seeds.programs[problem.program] if found is None else found

    def _tell_round(self, stage: str) -> None:
        progress = len(self.game.results) / self.rules.config.rounds
        for seat in self.seats:
            self.rules.layout.set_round(seat.vector, task=self.game.round.task, stage=stage, progress=progress)

    def _references(self) -> Shown:
        """Return what the proposer is shown: programs with their values, for induction the program alone."""
        current = self.game.round
        programs = [self._program(problem).tokens for problem in current.references]
        if current.task is Task.INDUCTION:
            return Shown(program=programs[0])
        pairs = [_pair(problem) for problem in current.references]
        if not pairs:
            return Shown()
        return Shown(program=programs[0], pairs=pairs[:1], others=list(zip(programs[1:], pairs[1:], strict=True)))

    def _problem(self) -> Shown:
        """Return what the solvers are shown."""
        problem = self.game.round.problem
        if problem is None:
            return Shown()
        if problem.task is Task.INDUCTION:
            pairs = [_pair(problem, place) for place in range(problem.n_visible)]
            return Shown(pairs=pairs, hint=read_hint(problem.message))
        given, gives = _pair(problem)
        pair = (given, None) if problem.task is Task.DEDUCTION else (None, gives)
        return Shown(program=self._program(problem).tokens, pairs=[pair])


def _pair(problem: Problem, place: int = 0) -> tuple[Tokens | None, Tokens | None]:
    given, gives = read_argument(problem.inputs[place]), read_literal(problem.outputs[place])
    return (None if given is None else given[1]), (None if gives is None else gives[1])
