"""`python -m populora_env.play`: a person takes a seat of the game in the terminal.

Owns the talk with the person: what is shown, what to type, and how typed lines become an action. The game is that of
all other players; the person is one more `Policy`.
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Sequence

from populora_env.config import GameConfig
from populora_env.game import Game
from populora_env.judging import play_round
from populora_env.prompts import get_style
from populora_env.rendering import escape, render_round
from populora_env.seats import GeneratorProposer, GuessingSolver
from populora_env.types import Answer, Observation, Policy, Proposal, Role, Task
from populora_env.verifier import SandboxError, Verifier

INTERRUPTED = 130
"""Exit status after Ctrl-C."""

_END = "."
_MOST_CHARS = 20_000
_SOLVERS = 4
"""Guessing players that attempt a person's problem."""

_DESCRIPTION = """Take a seat in the game of programs: solve problems of our generator, or propose problems to players
that guess. A sandbox runs what you write; after each round you see the verdict and what it pays."""

_EPILOG = """\
what to type
  A text may have several lines; end it with a line that holds a single dot, or with Ctrl-D. Ctrl-C leaves the game.
  As a solver, type the answer alone, the marks that a model has to write are added:
    deduction   the output, a Python literal, e.g. [1, 2] or 'ab'
    abduction   the tuple of f's arguments, e.g. (3, 'ab') or ([1, 2],)
    induction   a program that defines f
  As a proposer, type the program and one input for it; for induction several inputs for the program that you are
  shown, one a line, and a hint.

what it pays
  solver      +1 a correct answer, -0.5 a wrong one, -1 one that cannot be read
  proposer    1 - (share that solve it), but 0 if all or none do; -1 for an invalid proposal

examples
  python -m populora_env.play
  python -m populora_env.play --task induction --rounds 2
  python -m populora_env.play --seat proposer --task deduction
"""

_WELCOME = {
    Role.SOLVER: "You are solver_0. proposer_0 (our generator) makes the problems; what you see is what a model sees.",
    Role.PROPOSER: f"You are proposer_0. {_SOLVERS} players that guess attempt what you propose.",
}

_ANSWER = {
    Task.DEDUCTION: "What does f return for this input? Type the value as a Python literal, e.g. [1, 2] or 'ab'.",
    Task.ABDUCTION: "For which input does f return this output? Type the tuple of f's arguments, e.g. (3, 'ab').",
    Task.INDUCTION: "Which program maps these inputs to these outputs? Type one that defines f.",
}


class Leave(Exception):  # noqa: N818  (nothing went wrong)
    """The person ended the input."""


class Person:
    """A policy whose texts are typed."""

    def __init__(self, config: GameConfig) -> None:
        """Play by these rules."""
        self._config = config

    def __call__(self, observation: Observation) -> str:
        """Show what the seat sees and return what is typed.

        Raises:
            Leave: The input ended before anything was typed.
        """
        print(_boxed(observation.prompt))
        if observation.role is Role.SOLVER:
            return self._answer(observation)
        return self._proposal(observation)

    def _answer(self, observation: Observation) -> str:
        typed = _typed(_ANSWER[observation.task])
        return get_style(self._config.style).write_answer(Answer(task=observation.task, text=typed))

    def _proposal(self, observation: Observation) -> str:
        program = message = ""
        if observation.task is Task.INDUCTION:
            count = self._config.induction_inputs
            typed = _typed(f"Type {count} inputs for this program, one a line, each the tuple of f's arguments.")
            inputs = tuple(line for line in typed.split("\n") if line.strip())
            message = _typed("Type a hint for the solvers, who will see half of the inputs with their outputs.")
        else:
            program = _typed("Type a program that defines f, e.g. def f(x): return x[::-1]")
            inputs = (_typed("Type one input for it, the tuple of f's arguments, e.g. (3, 'ab') or ([1, 2],)."),)
        proposal = Proposal(task=observation.task, program=program, inputs=inputs, message=message)
        return get_style(self._config.style).write_proposal(proposal)


def play(seat: Role, config: GameConfig, seed: int) -> float:
    """Play a game with a person in one seat; return the sum of the person's rewards.

    Raises:
        Leave: The person ended the input.
    """
    game, person = Game(config, seed), Person(config)
    proposer: Policy = person if seat is Role.PROPOSER else GeneratorProposer(config, seed)
    solvers: list[Policy] = [GuessingSolver(config, seed + 1 + number) for number in range(config.solver_seats)]
    if seat is Role.SOLVER:
        solvers[0] = person
    total = 0.0
    with Verifier() as verifier:
        while not game.over:
            print(f"\n=== round {game.round_index + 1} of {config.rounds}: {game.round.task} ===")
            result = play_round(game.round, proposer=proposer, solvers=solvers, judge=verifier)
            print(f"\n{render_round(result, number=game.round_index + 1)}")
            rewards = [result.proposer_reward] if seat is Role.PROPOSER else result.solver_rewards
            total += sum(rewards)
            print(f"Your reward is {sum(rewards):+.2f}, {total:+.2f} in all.")
            game.advance()
    return total


def main(argv: Sequence[str] | None = None) -> int:
    """Parse the flags, play, and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m populora_env.play",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seat", choices=[*map(str, Role)], default="solver", help="yours (default: solver)")
    parser.add_argument("--task", choices=[str(task) for task in Task], help="only this task (default: each in turn)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds (default: 3)")
    parser.add_argument(
        "--style", choices=("chat", "compact"), default="chat", help="how prompts are written (default: chat)"
    )
    parser.add_argument("--seed", type=int, default=0, help="root of all draws, >= 0 (default: 0)")
    arguments = parser.parse_args(argv)
    if arguments.rounds < 1 or arguments.seed < 0:
        parser.error(f"expected --rounds >= 1 and --seed >= 0, got {arguments.rounds} and {arguments.seed}")
    seat = Role(arguments.seat)
    tasks = tuple(Task) if arguments.task is None else (Task(arguments.task),)
    config = GameConfig(
        tasks=tasks,
        rounds=arguments.rounds,
        style=arguments.style,
        solver_seats=1 if seat is Role.SOLVER else _SOLVERS,
    )
    for stream, errors in ((sys.stdin, "surrogateescape"), (sys.stdout, "backslashreplace")):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=errors)
    print(_WELCOME[seat])
    print(f"End what you type with a line that holds a single {_END!r} or with Ctrl-D; Ctrl-C leaves the game.")
    try:
        total = play(seat, config, arguments.seed)
    except Leave:
        print("\nThe input ended, and the game with it.")
        return 0
    except KeyboardInterrupt:
        print("\nYou left the game.")
        return INTERRUPTED
    except SandboxError as error:
        print(f"populora_env.play: {error}", file=sys.stderr)
        return 1
    print(f"\nThe game is over. Your rewards add up to {total:+.2f}.")
    return 0


def _boxed(prompt: str) -> str:
    """Return a prompt, escaped, set off from what is said to the person."""
    return "\n".join(f"| {line}" for line in escape(prompt.rstrip("\n"), max_chars=_MOST_CHARS).split("\n"))


def _typed(request: str) -> str:
    """Ask for a text and return it without its end mark.

    Raises:
        Leave: The input ended before anything was typed.
    """
    print(f"\n{request}", flush=True)
    lines: list[str] = []
    for line in sys.stdin:
        if line.rstrip("\r\n").strip() == _END:
            return "\n".join(lines)
        lines.append(line.rstrip("\r\n"))
    if not lines:
        raise Leave
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
