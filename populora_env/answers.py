"""How an answer is judged: a literal is compared, an input is fed to the fixed program, a program to hidden inputs.

Owns what makes an answer right. The gold values are compared here, in this process; no job ever holds one.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Sequence

from populora_env.admission import defines_f
from populora_env.config import VerifierConfig
from populora_env.glance import needs_no_tree
from populora_env.proposals import Check, verdict_of
from populora_env.sandbox.jobs import Job, Outcome
from populora_env.sandbox.kinds import HASH_SEEDS
from populora_env.screening import read_arguments
from populora_env.sensitivity import depends_on_hashes, may_hold_sets
from populora_env.sharing import leaves_nothing
from populora_env.source import Nodes, SourceError, read_program
from populora_env.types import Answer, Problem, Status, Task, Verdict
from populora_env.values import DecodeError, LiteralError, decode, read_literal

_TURNS = {Task.ABDUCTION: 0, Task.INDUCTION: 1, Task.DEDUCTION: 2}
_OK = Verdict(status=Status.OK)
_WRONG = Verdict(status=Status.WRONG)
_MAX_GOLD_CHARS = 1 << 16
_LOOSE_FACTOR, _LOOSE_BYTES = 10, 64
"""Values that are equal by == differ by no more than this in the length of their encodings."""


def answer_key(problem: Problem, answer: Answer) -> Hashable:
    """Return the content on which the verdict on an answer depends; never the problem's id alone."""
    hidden = problem.inputs[problem.n_visible :]
    program = "" if problem.task is not Task.ABDUCTION else problem.program
    return problem.task, program, hidden, problem.outputs[problem.n_visible :], answer.text


def in_order(problems: Sequence[Problem]) -> list[int]:
    """Return the places of problems in the order in which to begin with answers to them.

    First the inputs to fixed programs, those to one together, since a child then compiles it once; last what runs
    nothing and can be judged while the others run.
    """
    first: dict[str, int] = {}
    keys = [
        (_TURNS[problem.task], first.setdefault(problem.program, place) if problem.task is Task.ABDUCTION else 0)
        for place, problem in enumerate(problems)
    ]
    return sorted(range(len(problems)), key=keys.__getitem__)


def check_answer(problem: Problem, answer: Answer, config: VerifierConfig, *, owner: Hashable = None) -> Check[Verdict]:
    """Judge an answer to a problem; plain programs of one owner, and inputs of one plain program, share processes.

    Args:
        problem: What was asked.
        answer: What was said.
        config: Limits, and what counts as equal.
        owner: Whose the program is that runs: the problem's, or the answer if that is a program; None: nobody's.

    Raises:
        ValueError: The problem is not one of ours: its values cannot be read, or nothing of it is hidden.
    """
    if problem.task is Task.DEDUCTION:
        return _check_output(problem, answer, config)
    if problem.task is Task.ABDUCTION:
        return (yield from _check_input(problem, answer, config, owner))
    return (yield from _check_program(problem, answer, config, owner))


def _check_output(problem: Problem, answer: Answer, config: VerifierConfig) -> Verdict:
    try:
        _, data = read_literal(answer.text, max_chars=config.max_answer_chars)
    except LiteralError:
        return Verdict(status=Status.FORMAT, detail="literal")
    return _OK if _equal(data, _gold(problem.outputs)[0], config) else _WRONG


def _check_input(problem: Problem, answer: Answer, config: VerifierConfig, owner: Hashable) -> Check[Verdict]:
    data = read_arguments(answer.text, config)
    if data is None:
        return Verdict(status=Status.FORMAT, detail="literal")
    sensitive, plain = _nature_of_problem(problem.program)
    sensitive |= may_hold_sets(answer.text)
    shares = (("program", problem.program) if owner is None else ("owner", owner)) if plain else None
    outcomes = yield _jobs(problem.program, (data,), config, sensitive=sensitive, shares=shares)
    return _verdict(outcomes, _gold(problem.outputs), config)


def _check_program(problem: Problem, answer: Answer, config: VerifierConfig, owner: Hashable) -> Check[Verdict]:
    gold = _gold(problem.outputs[problem.n_visible :])
    inputs = _gold(problem.inputs[problem.n_visible :])
    if not inputs:
        raise ValueError(f"`problem` must have hidden inputs, got {problem.n_visible} visible of {len(problem.inputs)}")
    glanced = needs_no_tree(answer.text)
    nature = (False, True) if glanced else _nature_of_answer(answer.text)
    if isinstance(nature, Verdict):
        return nature
    sensitive, plain = nature
    sensitive |= any(map(may_hold_sets, problem.inputs))
    shares = ("owner", owner) if owner is not None and plain else None
    outcomes = yield _jobs(answer.text, inputs, config, sensitive=sensitive, shares=shares)
    verdict = _verdict(outcomes, gold, config)
    if glanced and verdict.status not in (Status.OK, Status.WRONG):
        refused = _nature_of_answer(answer.text)  # what was only glanced at may be no program
        return refused if isinstance(refused, Verdict) else verdict
    return verdict


@functools.lru_cache(maxsize=4096)
def _nature_of_problem(program: str) -> tuple[bool, bool]:
    """Return what `_nature` does for a problem's program, which is known to be one."""
    return (False, True) if needs_no_tree(program) else _nature(read_program(program)[1])


def _nature_of_answer(program: str) -> tuple[bool, bool] | Verdict:
    """Return what `_nature` does, or the verdict that the text is no program."""
    try:
        _, nodes = read_program(program)
    except SourceError:
        return Verdict(status=Status.FORMAT, detail="program")
    return _nature(nodes) if defines_f(nodes) else Verdict(status=Status.FORMAT, detail="no f")


def _nature(nodes: Nodes) -> tuple[bool, bool]:
    """Return whether a program depends on hashes, and whether it leaves nothing behind."""
    return depends_on_hashes(nodes), leaves_nothing(nodes)


def _jobs(
    program: str, inputs: tuple[bytes, ...], config: VerifierConfig, *, sensitive: bool, shares: Hashable
) -> tuple[Job, ...]:
    """Return one job; two under different hash seeds where the seed may matter, so that the verdict has no luck."""
    seeds: Sequence[int | None] = HASH_SEEDS[:2] if sensitive else (None,)
    return tuple(
        Job(
            program=program,
            inputs=inputs,
            cpu_s=config.cpu_s,
            wall_s=config.wall_s,
            hash_seed=seed,
            shares=shares,
        )
        for seed in seeds
    )


def _verdict(outcomes: Sequence[Outcome], gold: Sequence[bytes], config: VerifierConfig) -> Verdict:
    """Return the verdict on the first call that did not give its gold value."""
    for outcome in outcomes:
        for result, expected in zip(outcome.results, gold, strict=True):
            if result.status is not Status.OK:
                return verdict_of(result)
            if not _equal(result.payload, expected, config):
                return _WRONG
    return _OK


@functools.lru_cache(maxsize=4096)
def _gold(literals: tuple[str, ...]) -> tuple[bytes, ...]:
    return tuple(read_literal(literal, max_chars=_MAX_GOLD_CHARS)[1] for literal in literals)


def _equal(payload: bytes, gold: bytes, config: VerifierConfig) -> bool:
    if payload == gold:
        return config.equality == "strict" or bool(decode(gold) == decode(gold))
    if config.equality == "strict" or len(payload) > _LOOSE_FACTOR * len(gold) + _LOOSE_BYTES:
        return False
    try:
        return bool(decode(payload) == decode(gold))
    except DecodeError:
        return False
