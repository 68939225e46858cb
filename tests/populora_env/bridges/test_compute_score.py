"""Scores of completions: rows of the league's own table, the real judge, real worker processes."""

from __future__ import annotations

import json
import multiprocessing
import threading
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from populora_env.bridges.compute_score import compute_score, compute_scores, score_all, trl_reward
from populora_env.config import GameConfig
from populora_env.game import Round, seeded_buffer
from populora_env.judging import judge_attempts, judge_proposals
from populora_env.prompts import get_style
from populora_env.seats import GeneratorProposer
from populora_env.types import Answer, Problem, Task
from populora_env.verifier import Verifier

CORRECT, WRONG, MALFORMED = 1.0, -0.5, -1.0
ADD = Problem(
    problem_id="0", task=Task.DEDUCTION, program="def f(a):\n    return a + 1\n", inputs=("(1,)",), outputs=("2",)
)
DOUBLE = Problem(
    problem_id="1",
    task=Task.INDUCTION,
    program="def f(a):\n    return a * 2\n",
    inputs=("(1,)", "(2,)", "(3,)", "(4,)"),
    outputs=("2", "4", "6", "8"),
    message="twice",
    n_visible=2,
)
HOSTILE = (
    "",
    "\0",
    "\ud800",
    "x" * 10_000_000,
    "```" * 5000,
    "```python\n```output\n``````",
    "<answer>" * 3000,
    "<answer>\n" + "[" * 400,
    "<answer>\n" + "9" * 500 + "**9",
    "<answer>\n__import__('os').system('true')",
    "```output\n2",
    "# Antwort\n\n* zwei\n* 三\n\n| a |\n|---|\n",
    "<answer>\nNone if True else 2",
)
ATTACKS = (
    "import os\nos._exit(0)",
    "import sys\nfor frame in sys._current_frames().values():\n    frame.f_globals['_equal'] = lambda *a: True\n",
    "class Same(int):\n    def __eq__(self, other):\n        return True\ndef f(a):\n    return Same(0)\n",
    "def f(a):\n    while True:\n        pass\n",
    "def f(a):\n    return f(a)\n",
    "def f(a):\n    return [0] * 10**10\n",
    "import builtins\nbuiltins.len = lambda x: 0\ndef f(a):\n    return len(a)\n",
    "def f(a):\n    raise SystemExit(0)\n",
    "def f(a:\n",
)


def truth(problem: Problem) -> str:
    return json.dumps(asdict(problem))


def right_text(problem: Problem, style: Any) -> str:
    texts = {
        Task.DEDUCTION: problem.outputs[0],
        Task.ABDUCTION: problem.inputs[0],
        Task.INDUCTION: problem.program,
    }
    return "Let me think.\n" + get_style(style).write_answer(Answer(task=problem.task, text=texts[problem.task]))


def wrong_text(problem: Problem, style: Any) -> str:
    texts = {
        Task.DEDUCTION: "'no such value'",
        Task.ABDUCTION: "('no', 'such', 'input', 'at', 'all')",
        Task.INDUCTION: "def f(*a):\n    return 'no such value'\n",
    }
    return get_style(style).write_answer(Answer(task=problem.task, text=texts[problem.task]))


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier() as shared:
        yield shared


def settled_round(task: Task, style: Any, verifier: Verifier) -> Round:
    """Play a round in which the first solver is right, the second wrong, the third silent."""
    config = GameConfig(style=style, solver_seats=3, seed_problems=8)
    references = seeded_buffer(config).draw(task, 1, np.random.default_rng(0))
    item = Round(task=task, references=references, config=config)
    item.propose(GeneratorProposer(config, seed=4)(item.proposer_observation()))
    judge_proposals([item], verifier)
    assert item.problem is not None
    for text in (right_text(item.problem, style), wrong_text(item.problem, style), "no idea"):
        item.attempt(text)
    judge_attempts([item], verifier)
    return item


def league_rows(rounds: list[Round], path: Any) -> list[dict[str, Any]]:
    """Return the rounds' rows, through a Parquet file, as a training library reads them."""
    rows = pytest.importorskip("league.rows", reason="needs the extra `league`", exc_type=ImportError)
    from pyarrow import parquet

    from league.rounds import PlayedRound
    from league.schemas import to_table
    from league.types import Match, Member, Side

    teacher = Member(member_id="teacher_0", side=Side.TEACHER, slot=0, version=1)
    student = Member(member_id="student_0", side=Side.STUDENT, slot=0, version=1)
    match = Match(match_id=1, step=1, teacher=teacher, student=student, expected=0.5)
    played = [PlayedRound(match=match, round=item, proposal_id=f"p{n}", group_id="g") for n, item in enumerate(rounds)]
    parquet.write_table(
        to_table("problems", [rows.problem_row(one, n) for n, one in enumerate(played)], "run"), path / "p.parquet"
    )
    read: list[dict[str, Any]] = parquet.read_table(path / "p.parquet").to_pylist()
    return read


@pytest.mark.parametrize("style", ["compact", "chat"])
def test_a_row_of_the_league_is_scored_as_its_round_was_paid(style: Any, verifier: Verifier, tmp_path: Any) -> None:
    rounds = [settled_round(task, style, verifier) for task in Task]
    for item, row in zip(rounds, league_rows(rounds, tmp_path), strict=True):
        texts = [right_text(item.problem, style), wrong_text(item.problem, style), "no idea"]
        truths = [row["reward_model"]["ground_truth"]] * 3
        sources, extras = [row["data_source"]] * 3, [row["extra_info"]] * 3
        paid = list(item.result().solver_rewards)
        assert paid == [CORRECT, WRONG, MALFORMED]
        assert compute_scores(sources, texts, truths, extras) == paid
        assert compute_scores(sources, texts, truths, extras, style=style) == paid
        assert [compute_score(*case) for case in zip(sources, texts, truths, extras, strict=True)] == paid
        columns = {name: [value] * 3 for name, value in row.items()}
        chats = [[{"role": "assistant", "content": text}] for text in texts]
        assert trl_reward(completions=texts, **columns) == paid
        assert trl_reward(completions=chats, completion_ids=[[1]] * 3, trainer_state=None, **columns) == paid


def test_rows_of_invalid_proposals_are_refused_by_name(tmp_path: Any) -> None:
    config = GameConfig(solver_seats=1, seed_problems=8)
    item = Round(task=Task.DEDUCTION, references=(), config=config)
    item.propose("nothing that could be read")
    (row,) = league_rows([item], tmp_path)
    assert not row["valid"]
    with pytest.raises(ValueError, match="keep only rows with `valid`"):
        compute_score(row["data_source"], "2", row["reward_model"]["ground_truth"])


@pytest.mark.parametrize("bad", ["null", "[]", "{}", "not json", '{"task": "x"}', truth(ADD).replace("ded", "bed")])
def test_a_ground_truth_that_is_none_of_ours_is_the_callers_mistake(bad: str) -> None:
    with pytest.raises(ValueError, match="must be the JSON of a problem"):
        compute_score("populora/deduction", "2", bad)


@pytest.mark.parametrize("problem", [ADD, DOUBLE], ids=["deduction", "induction"])
def test_junk_costs_at_most_the_format_reward_and_never_raises(problem: Problem) -> None:
    scores = score_all(HOSTILE, [truth(problem)] * len(HOSTILE))
    assert set(scores) <= {MALFORMED, WRONG}
    assert scores[:7] == [MALFORMED] * 7


@settings(max_examples=60)
@given(st.text(st.characters(codec=None)), st.sampled_from(["", "<answer>\n", "```output\n"]))
def test_no_text_raises(text: str, before: str) -> None:
    assert compute_score("populora/deduction", f"{before}{text}\n```", truth(ADD)) in {CORRECT, WRONG, MALFORMED}


def test_hostile_programs_are_wrong_and_forge_no_later_score() -> None:
    texts = [f"```python\n{attack}\n```" for attack in ATTACKS]
    scores = score_all(texts, [truth(DOUBLE)] * len(texts))
    assert set(scores) <= {WRONG, MALFORMED}
    assert compute_score("", right_text(DOUBLE, "chat"), truth(DOUBLE)) == CORRECT
    assert compute_score("", wrong_text(DOUBLE, "chat"), truth(DOUBLE)) == WRONG


def test_the_answer_is_not_the_gold_value_alone() -> None:
    assert compute_score("", "2", truth(ADD)) == MALFORMED
    assert compute_score("", "<answer>\n2.0", truth(ADD)) == WRONG
    assert compute_score("", "```output\n3\n```\nNo:\n```output\n2\n```", truth(ADD)) == CORRECT


def test_settings_choose_the_form_and_the_pay() -> None:
    pay = {"correct": 10.0, "wrong": 1.0, "malformed": 0.0}
    texts = ["<answer>\n2", "<answer>\n3", "```output\n2\n```"]
    assert score_all(texts, [truth(ADD)] * 3, style="compact", **pay) == [10.0, 1.0, 0.0]
    assert score_all(["<answer>\n12345678901234567"], [truth(ADD)], max_answer_chars=16) == [MALFORMED]
    with pytest.raises(ValueError, match="one ground truth a completion"):
        score_all(texts, [truth(ADD)])
    with pytest.raises(TypeError, match="got corect"):
        score_all(texts[:1], [truth(ADD)], corect=2.0)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="`style` must be one of"):
        score_all(texts[:1], [truth(ADD)], style="prose")  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", [[], [{"role": "assistant", "content": None}], [{"role": "tool", "content": "2"}]])
def test_a_conversation_in_which_nothing_was_said_is_malformed(shape: Any) -> None:
    assert trl_reward(completions=[shape], reward_model=[{"ground_truth": truth(ADD)}]) == [MALFORMED]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_of_a_pool_score_although_the_parent_has_done_so_before(method: str) -> None:
    cases = [
        ("", "<answer>\n2", truth(ADD)),
        ("", "<answer>\n3", truth(ADD)),
        ("", right_text(DOUBLE, "chat"), truth(DOUBLE)),
    ]
    expected = [CORRECT, WRONG, CORRECT]
    assert [compute_score(*case) for case in cases] == expected
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.starmap(compute_score, cases * 2, chunksize=1) == expected * 2
    assert [compute_score(*case) for case in cases] == expected


def test_threads_score_at_once() -> None:
    scores: dict[int, float] = {}

    def score(n: int) -> None:
        text = f"```python\ndef f(a):\n    return a * {2 + n % 2}  # {n}\n```"
        scores[n] = compute_score("", text, truth(DOUBLE))

    threads = [threading.Thread(target=score, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert scores == {n: WRONG if n % 2 else CORRECT for n in range(8)}
