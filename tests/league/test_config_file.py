"""`config.yaml`: it comes back as it was written, and one clear line for every file that cannot be used."""

from __future__ import annotations

from dataclasses import replace

import pytest

from league.config import RunConfig, resolve
from league.config_file import ConfigError, dump_config, load_config
from league.options import EvolveOptions, GameOptions, PlayOptions
from populora_agents.config import NANO
from populora_env.config import RewardConfig
from populora_env.types import Task

OPERATORS = {"svd_perturb": True, "layer_select": True, "copy_parent": False}


def test_a_configuration_comes_back_from_its_file_but_for_out() -> None:
    config = RunConfig(
        teachers=2,
        base="some/model",
        out="x",
        tasks=(Task.INDUCTION,),
        play=PlayOptions(style="chat", temperature=0.5),
        game=GameOptions(rewards=RewardConfig(scheme="azr", invalid=-2.0)),
        evolve=EvolveOptions(evolution=False, operators=("copy_parent",)),
    )
    assert load_config(dump_config(config)) == replace(config, out=None)
    resolved = resolve(config, NANO, OPERATORS)
    assert load_config(dump_config(resolved)) == replace(resolved, out=None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- 1", "expected a YAML mapping"),
        ("a: [", "no YAML"),
        ("seed: 1", "`config_version` must be 1, got None"),
        ("config_version: 2", "`config_version` must be 1, got 2"),
        ("config_version: 1\ncolour: 3", "unknown field 'colour'"),
        ("config_version: 1\nplay: {colour: 3}", "unknown field 'play.colour'"),
        ("config_version: 1\nplay: 3", "`play` must be a mapping"),
        ("config_version: 1\nseed: '1'", "`seed` must be int, got '1'"),
        ("config_version: 1\nseed: true", "`seed` must be int, got True"),
        ("config_version: 1\nteachers: 0", "`teachers` must be at least 1"),
        ("config_version: 1\ntasks: [magic]", "`tasks` must be Task, got 'magic'"),
        ("config_version: 1\ngame: {rewards: {scheme: magic}}", "`game.rewards.scheme`"),
        ("config_version: 1\nteachers: null", "`teachers` must be int"),
        ("!!python/object/apply:os.system ['true']", "no YAML"),
    ],
)
def test_files_that_cannot_be_used(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_whole_numbers_may_stand_for_floats() -> None:
    assert load_config("config_version: 1\nplay: {temperature: 2}").play.temperature == 2.0
