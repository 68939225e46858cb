"""A pebble pool that reuses its workers, as Absolute Zero's executor does: fast, and open to whatever it runs.

Owns the snippets by which it judges, each a job of its own through `schedule`. It has the easier task: the gold values
stand in the snippet that can read them, a deduction does not run its program, both runs of a proposal share a snippet
and a process, and nothing of the text is looked at before.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from judges.contenders import Contender, MixJudge, SmallJob, installed
from judges.mix import Mix
from populora_env.types import Answer, Problem, Proposal, Task

TIMEOUT_S = 10.0
_SMALL = "{program}\nverdict = f(*{arguments!r}) == {output!r}"
_DEDUCTION = "verdict = eval({gold!r}) == eval({answer!r})"
_ABDUCTION = "{program}\nverdict = {gold} == f(*{answer})"
_INDUCTION = "{answer}\nverdict = all(gold == f(*given) for given, gold in [{pairs}])"
_PROPOSAL = """{program}
first = [f(*given) for given in [{inputs}]]
if first != [f(*given) for given in [{inputs}]]:
    raise ValueError("not deterministic")
verdict = repr(first)"""


class ReusedPool:
    """The pool, with as many workers as callers."""

    def __init__(self, callers: int) -> None:
        """Start the workers."""
        self._callers = ThreadPoolExecutor(callers)
        self._pool: Any = importlib.import_module("pebble").ProcessPool(max_workers=callers)

    def judge(self, jobs: Sequence[SmallJob]) -> list[bool]:
        """Run the jobs, each caller waiting for one at a time."""
        return self._one_by_one(
            _SMALL.format(program=job.program, arguments=job.arguments, output=job.output) for job in jobs
        )

    def _judge_mix(self, mix: Mix) -> tuple[list[bool], list[bool]]:
        valid = self._one_by_one(map(_proposal_snippet, mix.proposals))
        return valid, self._one_by_one(_answer_snippet(*attempt) for attempt in mix.attempts)

    def _judge_mix_at_once(self, mix: Mix) -> tuple[list[bool], list[bool]]:
        valid = self._all_at_once(map(_proposal_snippet, mix.proposals))
        return valid, self._all_at_once(_answer_snippet(*attempt) for attempt in mix.attempts)

    def mix_judges(self) -> Mapping[str, MixJudge]:
        """Return both ways to feed it: as many callers as it has workers, or everything at once."""
        return {"reused_pool": self._judge_mix, "reused_pool_at_once": self._judge_mix_at_once}

    def close(self) -> None:
        """End the workers."""
        self._callers.shutdown()
        self._pool.stop()
        self._pool.join()

    def _one_by_one(self, snippets: Iterable[str]) -> list[bool]:
        return list(self._callers.map(lambda snippet: _verdict(self._schedule(snippet)), snippets))

    def _all_at_once(self, snippets: Iterable[str]) -> list[bool]:
        return [_verdict(future) for future in [self._schedule(snippet) for snippet in snippets]]

    def _schedule(self, snippet: str) -> Future[object]:
        future: Future[object] = self._pool.schedule(run_snippet, args=[snippet], timeout=TIMEOUT_S)
        return future


def run_snippet(snippet: str) -> object:
    """Run a snippet in this very process and return its `verdict`."""
    names: dict[str, Any] = {}
    exec(snippet, names)
    return names["verdict"]


def _verdict(future: Future[object]) -> bool:
    """Return a snippet's verdict; whatever it raised in the worker is raised here, and means that it is wrong."""
    try:
        return bool(future.result())
    except Exception:
        return False


def _proposal_snippet(proposal: Proposal) -> str:
    return _PROPOSAL.format(program=proposal.program, inputs=", ".join(proposal.inputs))


def _answer_snippet(problem: Problem, answer: Answer) -> str:
    if problem.task is Task.DEDUCTION:
        return _DEDUCTION.format(gold=problem.outputs[0], answer=answer.text)
    if problem.task is Task.ABDUCTION:
        return _ABDUCTION.format(program=problem.program, gold=problem.outputs[0], answer=answer.text)
    hidden = zip(problem.inputs[problem.n_visible :], problem.outputs[problem.n_visible :], strict=True)
    pairs = ", ".join(f"({given}, {gold})" for given, gold in hidden)
    return _INDUCTION.format(answer=answer.text, pairs=pairs)


REUSED_POOL = Contender(
    name="reused_pool",
    n_jobs=900,
    start=ReusedPool,
    version=installed("pebble", "pebble"),
    install="pip install pebble",
)
