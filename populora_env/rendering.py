"""A round, and a game under way, as text for people.

Owns the look of it. Whatever a player wrote is escaped, so that no text can steer a terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from gymnasium import logger

from populora_env.game import Game, RoundResult
from populora_env.types import Answer, Problem, Status, Task, Verdict

RENDER_MODES = ("ansi", "human")

_MAX_CHARS = 2000

_ASKED = {Task.DEDUCTION: "the output is asked for", Task.ABDUCTION: "an input that gives this output is asked for"}


def check_render_mode(mode: str | None) -> None:
    """Check a render mode.

    Raises:
        ValueError: There is no such mode.
    """
    if mode is not None and mode not in RENDER_MODES:
        raise ValueError(f"`render_mode` must be None or one of {RENDER_MODES}, got {mode!r}")


def show(draw: Callable[[], str], mode: str | None) -> str | None:
    """Return (`ansi`) or write to stdout (`human`) what `draw` gives; without a mode warn that there is none."""
    if mode is None:
        logger.warn("render() needs a `render_mode`: make the environment with render_mode='ansi' or 'human'")
        return None
    if mode == "ansi":
        return draw()
    sys.stdout.write(draw() + "\n")
    return None


def picture(game: Game, waiting_for: Sequence[str], *, last: int | None = None) -> str:
    """Return a settled round and which agents the game waits for; `last`: the round's place, None for the last one."""
    lines = []
    if game.results:
        place = len(game.results) - 1 if last is None else last
        lines.append(render_round(game.results[place], number=place + 1))
    if game.over:
        lines.append(f"game over after {game.config.rounds} round{'s' * (game.config.rounds > 1)}")
    else:
        progress = f"round {game.round_index + 1} of {game.config.rounds}"
        lines.append(f"{progress}: {game.round.task}, waiting for {' and '.join(waiting_for)}")
    return "\n".join(lines)


def escape(text: str, *, max_chars: int = _MAX_CHARS) -> str:
    """Return `text`, cut at `max_chars`, with everything unprintable but line ends as a backslash escape."""
    cut = text if len(text) <= max_chars else text[:max_chars] + "..."
    return "".join(
        char if char.isprintable() or char == "\n" else char.encode("unicode_escape").decode("ascii") for char in cut
    )


def render_round(result: RoundResult, *, number: int) -> str:
    """Return a settled round, gold values included, in a few lines; `number` is its place, 1-based."""
    lines = [f"round {number}: {result.task}", *_proposal_lines(result)]
    for seat, verdict in enumerate(result.attempt_verdicts):
        said = _said(verdict, "correct", "wrong", "no readable answer")
        lines.append(f"  solver_{seat}    {said}, reward {result.solver_rewards[seat]:+.2f}")
        lines += _answer_lines(result.answers[seat])
    if result.solve_rate is not None:
        solved = sum(verdict.ok for verdict in result.attempt_verdicts)
        lines.append(f"  {solved} of {len(result.attempt_verdicts)} solved it")
    return "\n".join(lines)


def _proposal_lines(result: RoundResult) -> list[str]:
    said = _said(result.proposal_verdict, "a valid problem", "an invalid problem", "no readable proposal")
    lines = [f"  proposer_0  {said}, reward {result.proposer_reward:+.2f}"]
    if result.problem is not None:
        return lines + _problem_lines(result.problem)
    if result.proposal is not None:
        lines += _indent(result.proposal.program)
        lines += [line for given in result.proposal.inputs for line in _indent(f"input {given}")]
    return lines


def _problem_lines(problem: Problem) -> list[str]:
    lines = _indent(problem.program)
    pairs = list(zip(problem.inputs, problem.outputs, strict=True))
    if problem.task is not Task.INDUCTION:
        (given, gives) = pairs[0]
        return [*lines, *_indent(f"{_call(given)} == {gives}    <- {_ASKED[problem.task]}")]
    for place, (given, gives) in enumerate(pairs):
        lines += _indent(f"{_call(given)} == {gives}    <- {'shown' if place < problem.n_visible else 'hidden'}")
    return [*lines, *_indent(f"hint: {problem.message}"), *_indent("the program is asked for")]


def _answer_lines(answer: Answer | None) -> list[str]:
    return [] if answer is None else _indent(answer.text)


def _call(given: str) -> str:
    """Return the call that a literal of an argument tuple stands for."""
    return f"f{given[:-2]})" if given.endswith(",)") else f"f{given}"


def _said(verdict: Verdict, good: str, bad: str, unreadable: str) -> str:
    """Return a verdict in words, with its status and detail where the words do not say all."""
    if verdict.ok:
        return good
    if verdict.status is Status.WRONG:
        return bad
    return f"{unreadable if verdict.status is Status.FORMAT else bad} ({escape(str(verdict))})"


def _indent(text: str) -> list[str]:
    return [f"      {line}" for line in escape(text).split("\n")]
