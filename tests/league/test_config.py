"""The configuration: ranges, resolution by a preset, and that nothing of the layers below is out of reach."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import pytest

from league.config import RunConfig, known, make_game, resolve
from league.options import (
    EvolveOptions,
    GameOptions,
    LearnOptions,
    MachineOptions,
    MatchOptions,
    MeasureOptions,
    PlayOptions,
)
from populora_agents.config import LARGE, NANO, SMALL, LoraConfig
from populora_env.config import GameConfig, VerifierConfig
from populora_env.types import Task

OPERATORS = {"svd_perturb": True, "layer_select": True, "copy_parent": False}


def nones(value: Any, where: str = "") -> list[str]:
    """Return the dotted names of all fields that are None."""
    if not is_dataclass(value):
        return [where] if value is None else []
    return [name for field in fields(value) for name in nones(getattr(value, field.name), f"{where}.{field.name}")]


@pytest.mark.parametrize("preset", [NANO, SMALL, LARGE])
def test_a_resolved_configuration_has_no_none_but_out_and_game_by_preset(preset: Any) -> None:
    config = resolve(RunConfig(), preset, OPERATORS)
    assert nones(config) == [".out"]
    game = make_game(config, preset)
    assert (game.style, game.references, game.solver_seats) == (preset.style, preset.references, preset.attempts)
    assert game == make_game(config, None)
    assert game.rounds == 3 * preset.proposals
    assert config.steps == preset.steps
    assert (config.play.temperature, config.play.top_p) == (preset.temperature, preset.top_p)
    assert config.evolve.operators == ("svd_perturb", "layer_select")
    assert resolve(config, LARGE, OPERATORS) == config


def test_what_the_user_says_wins_over_the_preset() -> None:
    config = RunConfig(
        steps=0,
        play=PlayOptions(references=0, proposals=7, style="chat"),
        learn=LearnOptions(alpha=1.0, targets=("q_proj",)),
        evolve=EvolveOptions(evolve_every=99, operators=("copy_parent",)),
    )
    resolved = resolve(config, NANO, OPERATORS)
    assert (resolved.steps, resolved.play.references, resolved.play.proposals, resolved.play.style) == (0, 0, 7, "chat")
    assert (resolved.learn.alpha, resolved.learn.targets) == (1.0, ("q_proj",))
    assert (resolved.evolve.evolve_every, resolved.evolve.min_age) == (99, 198)
    assert resolved.evolve.operators == ("copy_parent",)


def test_unknown_operators_are_refused_by_name_with_the_list() -> None:
    config = RunConfig(evolve=EvolveOptions(operators=("svd_perturb", "magic")))
    with pytest.raises(ValueError, match="svd_perturb, layer_select, copy_parent; got 'magic'"):
        resolve(config, NANO, OPERATORS)


def test_operators_are_weighted_by_name() -> None:
    assert EvolveOptions().weights == {}
    assert EvolveOptions(operators=("svd_mix=2", "dare", "a.b:c=0.5")).weights == {
        "svd_mix": 2.0,
        "dare": 1.0,
        "a.b:c": 0.5,
    }
    assert EvolveOptions(operators=("svd_mix=2,dare", "ties")).weights == {"svd_mix": 2.0, "dare": 1.0, "ties": 1.0}
    config = RunConfig(evolve=EvolveOptions(operators=("svd_perturb=3", "magic=2")))
    with pytest.raises(ValueError, match="got 'magic'"):
        resolve(config, NANO, OPERATORS)


def test_every_field_of_the_layers_below_can_be_set() -> None:
    assert {field.name for field in fields(RunConfig)} >= {"verifier", "ratings", "tasks"}
    renamed = {"solver_seats": "attempts", "rounds": "proposals"}
    mine = {field.name for options in (PlayOptions, GameOptions, RunConfig) for field in fields(options)}
    assert {renamed.get(field.name, field.name) for field in fields(GameConfig)} <= mine
    assert {field.name for field in fields(LoraConfig)} <= {field.name for field in fields(LearnOptions)}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RunConfig(teachers=0), "`teachers` must be at least 1, got 0"),
        (lambda: RunConfig(students=-1), "`students` must be at least 1"),
        (lambda: RunConfig(steps=-1), "`steps`"),
        (lambda: RunConfig(seed=-1), "`seed`"),
        (lambda: RunConfig(seed=2**63), "`seed`"),
        (lambda: RunConfig(base=""), "`base`"),
        (lambda: RunConfig(out=""), "`out`"),
        (lambda: RunConfig(tasks=()), "`tasks`"),
        (lambda: RunConfig(tasks=(Task.DEDUCTION, Task.DEDUCTION)), "`tasks`"),
        (lambda: RunConfig(game=GameOptions(seed_problems=0)), "`seed_problems`"),
        (lambda: RunConfig(game=GameOptions(buffer_size=1)), "`buffer_size`"),
        (lambda: RunConfig(verifier=VerifierConfig(max_answer_chars=64)), "must agree"),
        (lambda: PlayOptions(attempts=0), "`attempts`"),
        (lambda: PlayOptions(temperature=0.0), "`temperature`"),
        (lambda: PlayOptions(temperature=float("nan")), "`temperature`"),
        (lambda: PlayOptions(top_p=0.0), "`top_p`"),
        (lambda: PlayOptions(top_p=1.5), "`top_p` must be at most 1"),
        (lambda: LearnOptions(lora_rank=0), "`lora_rank`"),
        (lambda: LearnOptions(teacher_learning_rate=-1.0), "`teacher_learning_rate`"),
        (lambda: LearnOptions(targets=()), "`targets`"),
        (lambda: LearnOptions(kl_coefficient=-0.1), "`kl_coefficient`"),
        (lambda: LearnOptions(length_constant=0), "`length_constant`"),
        (lambda: LearnOptions(shared_row_tokens=-1), "`shared_row_tokens`"),
        (lambda: EvolveOptions(fraction=1.5), "`fraction`"),
        (lambda: EvolveOptions(operators=()), "`operators`"),
        (lambda: EvolveOptions(operators=("a", "a")), "`operators` must name none twice, got 'a' again"),
        (lambda: EvolveOptions(operators=("a", "a=2")), "`operators` must name none twice, got 'a' again"),
        *(
            (lambda choice=choice: EvolveOptions(operators=(choice,)), "NAME or NAME=WEIGHT with a weight above 0")
            for choice in ("a=", "a=0", "a=-1", "a=nan", "a=inf", "a=much", "=2")
        ),
        (lambda: EvolveOptions(caution=float("nan")), "`caution`"),
        (lambda: EvolveOptions(caution=float("inf")), "`caution` must be finite"),
        (lambda: MachineOptions(threads=-1), "`threads`"),
        (lambda: MachineOptions(save_every=0), "`save_every`"),
    ],
)
def test_out_of_range(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_what_is_not_resolved_is_not_known() -> None:
    assert known(0) == 0
    with pytest.raises(ValueError, match="not resolved"):
        known(RunConfig().steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unused:
    """Keeps `nones` honest: a None at any depth is found."""

    inner: EvolveOptions


def test_nones_are_found_at_any_depth() -> None:
    assert nones(_Unused(inner=EvolveOptions())) == [".inner.evolve_every", ".inner.operators", ".inner.min_age"]


@pytest.mark.parametrize(
    ("changes", "members", "matches"),
    [
        ({}, 7, 4),
        ({"single_agent": True}, 1, 1),
        ({"single_agent": True, "baseline_compute": "total"}, 1, 4),
        ({"baseline_compute": "total"}, 7, 4),
    ],
)
def test_a_single_agent_plays_for_a_pair_or_for_the_whole_population(
    changes: dict[str, Any], members: int, matches: int
) -> None:
    config = RunConfig(teachers=3, students=4, **changes)
    assert (config.members, config.matches) == (members, matches)


@pytest.mark.parametrize(
    "changes", [{"match": MatchOptions(past_opponents=0.2)}, {"measure": MeasureOptions(cross_eval_every=5)}]
)
def test_what_needs_two_sides_is_refused_for_a_single_agent(changes: dict[str, Any]) -> None:
    RunConfig(**changes)
    with pytest.raises(ValueError, match="needs two sides, with `single_agent` it must be 0"):
        RunConfig(single_agent=True, **changes)
