"""Asking all players in one batch, and what their answers come to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from toy_data import write_rows

from league.evaluation.humaneval import humaneval_plus
from league.evaluation.players import BARE, Player
from league.evaluation.report import as_object, summarise, table, write_answers
from league.evaluation.runner import Asking, Result, ask
from league.evaluation.types import Suite
from populora_agents.types import AdapterVersion, Completion, Request
from populora_env.config import VerifierConfig
from populora_env.scoring import ProgramLimits
from populora_env.verifier import Verifier

WISE = Player(name="student_0", group="member", adapter=AdapterVersion(member_id="student_0", version=3))
DULL = Player(name="student_1", group="member", adapter=AdapterVersion(member_id="student_1", version=3))
ALONE = Player(
    name="baseline/agent_0", group="baseline", adapter=AdapterVersion(member_id="baseline/agent_0", version=9)
)
PLAYERS = (BARE, WISE, DULL, ALONE)


class Knowing:
    """A backend: one member knows all, another the first question, the third every other sample of it."""

    name = "knowing"

    def __init__(self) -> None:
        """Nothing was asked yet."""
        self.batches: list[list[Request]] = []

    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Answer."""
        self.batches.append(list(requests))
        return [self._answer(request, place) for place, request in enumerate(requests)]

    def close(self) -> None:
        """Hold nothing."""

    def _answer(self, request: Request, place: int) -> Completion:
        first = "double" in request.messages[0].content
        who = None if request.adapter is None else request.adapter.member_id
        right = "    return 2 * x\n" if first else "    return 3.14159265358979 * r * r\n"
        knows = who == "student_0" or (first and (who == "student_1" or (who is not None and place % 2 == 0)))
        return Completion(
            request=request,
            prompt_ids=(1,),
            token_ids=(1, 2),
            logprobs=(0.0, 0.0),
            text=right if knows else "    pass\ud800",
            finish_reason="stop",
        )


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    folder = write_rows(tmp_path_factory.mktemp("data") / "sets", "humanevalplus")
    with Verifier(VerifierConfig(workers=2)) as verifier:
        yield humaneval_plus(folder, verifier, ProgramLimits())


@pytest.fixture(scope="module")
def results(suite: Suite) -> list[Result]:
    backend = Knowing()
    found = ask(suite, PLAYERS, backend, Asking(manner="base", samples=2, temperature=0.8), lambda _: True)
    (batch,) = backend.batches  # all players, all questions, all samples
    assert len(batch) == len(found) == 4 * 2 * 2
    assert len({request.seed for request in batch}) == len(batch)
    return found


def test_the_table_says_population_best_weakest_and_baseline(results: list[Result]) -> None:
    lines = summarise(results, [1, 2], seed=0)
    found = {(line.who, line.name, line.k): line.value.mean for line in lines}
    assert found == {
        ("base", "base", 1): 0.0,
        ("base", "base", 2): 0.0,
        ("population", "", 1): 0.75,
        ("population", "", 2): 0.75,
        ("best member", "student_0", 1): 1.0,
        ("best member", "student_0", 2): 1.0,
        ("weakest member", "student_1", 1): 0.5,
        ("weakest member", "student_1", 2): 0.5,
        ("baseline", "", 1): 0.25,
        ("baseline", "", 2): 0.5,
        ("population - baseline", "", 1): 0.5,
        ("population - baseline", "", 2): 0.25,
    }
    assert all(line.value.low <= line.value.mean <= line.value.high for line in lines)
    assert lines == summarise(results, [1, 2], seed=0)
    text = "\n".join(table(lines))
    assert "best member (student_0)" in text
    assert len(as_object(lines)) == len(lines)


def test_all_answers_are_kept_in_parquet(results: list[Result], tmp_path: Path) -> None:
    write_answers(tmp_path / "answers.parquet", results)
    rows = pq.read_table(tmp_path / "answers.parquet").to_pylist()
    assert len(rows) == len(results)
    assert np.mean([row["correct"] for row in rows if row["player"] == "student_0"]) == 1
    assert {row["detail"] for row in rows} == {"ok", "error(UnicodeEncodeError)"}


def test_a_prompt_without_room_is_an_answer_that_is_not_right(suite: Suite) -> None:
    backend = Knowing()
    found = ask(suite, (WISE,), backend, Asking(manner="chat"), lambda messages: "double" in messages[0].content)
    assert [len(batch) for batch in backend.batches] == [1]
    assert [result.grade.detail for result in found][1] == "prompt too long"


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="must be 1 at `temperature` 0"):
        Asking(manner="chat", samples=4)
    with pytest.raises(ValueError, match="`samples` >= 1"):
        Asking(manner="chat", samples=0)
