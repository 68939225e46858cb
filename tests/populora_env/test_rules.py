"""Tests of `populora_env.rules`."""

import pytest

from populora_env.config import GameConfig, RewardConfig
from populora_env.rules import make_config
from populora_env.types import Task


def test_keywords_win_over_the_config_and_the_rest_stays():
    config = GameConfig(rounds=7, references=5, buffer_size=300)
    rules = {"solver_seats": 2, "tasks": ("induction", "deduction"), "references": 1, "style": "chat"}
    made = make_config(config, rules)
    assert made == GameConfig(
        rounds=7,
        references=1,
        buffer_size=300,
        solver_seats=2,
        tasks=(Task.INDUCTION, Task.DEDUCTION),
        style="chat",
    )
    assert config.references == 5
    assert make_config(None, {}) == GameConfig()


@pytest.mark.parametrize("rules", [{"rounds": 9}, {"max_cycles": 9}, {"rounds": 9, "max_cycles": 9}])
def test_max_cycles_is_another_name_of_rounds(rules):
    assert make_config(None, rules).rounds == 9


def test_none_means_not_given():
    assert make_config(GameConfig(rounds=4), {"rounds": None, "max_cycles": None, "tasks": None}).rounds == 4


def test_a_reward_is_a_scheme_or_all_that_is_paid():
    base = GameConfig(rewards=RewardConfig(wrong=-0.25))
    assert make_config(base, {"reward": "linear"}).rewards == RewardConfig(scheme="linear", wrong=-0.25)
    assert make_config(base, {"reward": RewardConfig(correct=2.0)}).rewards == RewardConfig(correct=2.0)


def test_one_task_needs_no_tuple():
    assert make_config(None, {"tasks": "abduction"}).tasks == (Task.ABDUCTION,)


def test_seats_of_the_caller_hold_where_nobody_says_otherwise():
    assert make_config(None, {}, solver_seats=1).solver_seats == 1
    assert make_config(GameConfig(), {}, solver_seats=1).solver_seats == 4
    assert make_config(None, {"solver_seats": 3}, solver_seats=1).solver_seats == 3


@pytest.mark.parametrize(
    ("rules", "error", "words"),
    [
        ({"round": 3}, TypeError, "expected rules among rounds, .* got round"),
        ({"rounds": 3, "max_cycles": 4}, ValueError, "one setting"),
        ({"rounds": 0}, ValueError, "`rounds` must be at least 1"),
        ({"tasks": ("deduction", "seduction")}, ValueError, "`tasks` must be among .*'seduction'"),
        ({"tasks": ()}, ValueError, "at least one task"),
        ({"reward": "generous"}, ValueError, "`reward` must be among paper, .*'generous'"),
        ({"style": "verse"}, ValueError, "`style` must be among"),
    ],
)
def test_what_makes_no_game_is_refused(rules, error, words):
    with pytest.raises(error, match=words):
        make_config(None, rules)
