"""A round as text for people.

Owns the look of it. Whatever a player wrote is escaped, so that no text can steer a terminal.
"""

from __future__ import annotations

from populora_env.game import RoundResult
from populora_env.types import Problem, Task

_MAX_CHARS = 2000


def escape(text: str) -> str:
    """Return `text`, cut at 2000 characters, with everything unprintable but line ends as a backslash escape."""
    cut = text if len(text) <= _MAX_CHARS else text[:_MAX_CHARS] + "..."
    return "".join(
        char if char.isprintable() or char == "\n" else char.encode("unicode_escape").decode("ascii") for char in cut
    )


def render_round(result: RoundResult, *, number: int) -> str:
    """Return a settled round, gold values included, in a few lines; `number` is its place, 1-based."""
    lines = [f"round {number}: {result.task}"]
    lines.append(f"  proposer_0  {escape(str(result.proposal_verdict))}  reward {result.proposer_reward:+.2f}")
    if result.problem is not None:
        lines += _problem_lines(result.problem)
    elif result.proposal is not None:
        lines += _indent(result.proposal.program)
    for seat, verdict in enumerate(result.attempt_verdicts):
        answer = result.answers[seat]
        lines.append(f"  solver_{seat}    {escape(str(verdict))}  reward {result.solver_rewards[seat]:+.2f}")
        if answer is not None:
            lines += _indent(answer.text)
    if result.solve_rate is not None:
        lines.append(f"  solve rate  {result.solve_rate:.2f}")
    return "\n".join(lines)


def _problem_lines(problem: Problem) -> list[str]:
    lines = _indent(problem.program)
    for place, (given, gives) in enumerate(zip(problem.inputs, problem.outputs, strict=True)):
        hidden = problem.task is Task.INDUCTION and place >= problem.n_visible
        lines += _indent(f"f{given} = {gives}" + ("  (hidden)" if hidden else ""))
    return lines + (_indent(f"message: {problem.message}") if problem.message else [])


def _indent(text: str) -> list[str]:
    return [f"      {line}" for line in escape(text).split("\n")]
