"""nano's evaluation: right about players whose skill is known, and nano keeps what it promises."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from populora_agents.bases import Base, load_base
from populora_agents.nano.evaluate import WORKED, evaluate, main
from populora_agents.nano.speaker import Speaker
from populora_env.config import GameConfig
from populora_env.generator import generate_problem
from populora_env.prompts import get_style
from populora_env.types import Answer, Observation, Proposal, Role, Task
from populora_env.verifier import Verifier

STYLE = get_style("compact")


@pytest.fixture(scope="module")
def base() -> Base:
    return load_base("nano")


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier() as judge:
        yield judge


def runs_the_program(observation: Observation) -> str:
    """Answer deduction by running the generator's own program; know nothing of the other tasks."""
    if observation.task is not Task.DEDUCTION:
        return ""
    program, given = observation.prompt.split("<program>\n")[1].split("\n<input>\n")
    namespace: dict[str, object] = {}
    exec(program, namespace)
    f = namespace["f"]
    assert callable(f)
    return STYLE.write_answer(Answer(task=Task.DEDUCTION, text=repr(f(*ast.literal_eval(given.strip())))))


def known_player(
    observations: Sequence[Observation], temperature: float, max_new_tokens: int, begin: str = ""
) -> list[str]:
    """Propose the same valid deduction problem always; solve as `runs_the_program`, but never when made to work."""
    del temperature, max_new_tokens
    if begin == WORKED:
        return [f"{begin}1\nno answer" for _ in observations]
    problem = generate_problem(np.random.default_rng(1), task=Task.DEDUCTION)
    proposal = Proposal(task=Task.DEDUCTION, program=problem.program, inputs=problem.inputs)
    return [STYLE.write_proposal(proposal) if o.role is Role.PROPOSER else runs_the_program(o) for o in observations]


def test_a_player_of_known_skill_gets_its_known_figures(base: Base, verifier: Verifier) -> None:
    figures = evaluate(base, known_player, verifier, seed=0, count=48)
    assert figures["deduction"] == 1.0
    assert figures["abduction"] == figures["induction"] == 0.0
    assert figures["valid_deduction"] == figures["valid_abduction"] == 1.0
    assert figures["valid_induction"] == 0.0
    assert figures["valid"] == pytest.approx(2 / 3)
    assert figures["distinct"] == pytest.approx(2 / 96)
    assert sum(share for name, share in figures.items() if name.startswith("family_")) == 1.0
    assert (figures["direct"], figures["worked"], figures["worked_share"]) == (1.0, 0.0, 0.0)
    assert {f"{name}_depth_{depth}" for name in ("direct", "worked", "deduction") for depth in range(1, 7)} <= set(
        figures
    )


def test_nano_proposes_and_solves_as_promised(base: Base, verifier: Verifier) -> None:
    figures = evaluate(base, Speaker(base, None, seed=0), verifier, seed=0, count=96)
    assert figures["valid"] >= 0.6
    assert figures["deduction"] >= 0.15
    assert figures["distinct"] >= 0.8


def test_the_games_own_settings_are_those_nano_was_trained_on(base: Base) -> None:
    assert base.preset.style == GameConfig().style == "compact"
    assert base.preset.induction_inputs == GameConfig().induction_inputs


def test_the_command_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--count", "48", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert {"valid", "distinct", "deduction", "abduction", "induction", "deduction_depth_6"} <= set(figures)


def test_an_unreadable_base_is_one_line_and_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--base", "no/such/folder/anywhere"])
    assert stop.value.code == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("flags", [["--count", "0"], ["--seed", "-1"]])
def test_values_out_of_range_are_refused(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(flags)
    assert stop.value.code == 2
    assert "must be at least" in capsys.readouterr().err
