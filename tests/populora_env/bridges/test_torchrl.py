"""The token game under TorchRL: specs, masks, groups, and rewards that are those of the game."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("torchrl", reason="needs the extra `bridges`")

from torchrl.envs.utils import check_env_specs

from populora_env import token_v0
from populora_env.bridges.torchrl import group_map, torchrl_env
from populora_env.config import GameConfig
from populora_env.game import RoundResult
from populora_env.verifier import Verifier

CONFIG = GameConfig(solver_seats=2, rounds=3, seed_problems=16)

pytestmark = pytest.mark.filterwarnings(
    "ignore:PettingZoo in TorchRL is tested:UserWarning", "ignore::DeprecationWarning", "ignore::FutureWarning"
)


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier() as shared:
        yield shared


MAKERS = pytest.mark.parametrize("make", [token_v0.TokenParallelEnv, token_v0.TokenEnv], ids=["parallel", "aec"])


@MAKERS
def test_specs_hold_over_an_episode(make: Callable[..., Any], verifier: Verifier) -> None:
    env = torchrl_env(make(config=CONFIG, verifier=verifier), seed=3)
    check_env_specs(env)
    assert env.group_map == {"proposers": ["proposer_0"], "solvers": ["solver_0", "solver_1"]}
    for group, agents in env.group_map.items():
        seen = env.reset()[group]
        assert seen["action_mask"].shape == (len(agents), 57)
        assert set(seen["info"].keys()) == {"round", "task", "verdict", "solve_rate", "game_reward"}


@MAKERS
def test_random_play_is_legal_ends_and_is_paid_as_the_game_pays(make: Callable[..., Any], verifier: Verifier) -> None:
    settled: list[RoundResult] = []
    env = torchrl_env(make(config=CONFIG, verifier=verifier, on_settled=settled.append), seed=5)
    env.set_seed(11)
    played = env.rollout(400)
    assert played["next", "done"][-1].all()
    assert not played["next", "done"][:-1].any()
    for group in env.group_map:
        legal = played[group, "action_mask"].gather(-1, played[group, "action"].unsqueeze(-1))
        acts = played[group, "mask"]
        assert legal.squeeze(-1)[acts].all()
    last = settled[-CONFIG.rounds :]
    paid = played["next", "proposers", "reward"].sum(0).flatten().tolist()
    paid += played["next", "solvers", "reward"].sum(0).flatten().tolist()
    due = [sum(result.proposer_reward for result in last)]
    due += [sum(result.solver_rewards[seat] for result in last if result.solver_rewards) for seat in range(2)]
    assert paid == pytest.approx(due)
    assert any(result.problem is not None for result in settled)


def test_the_same_seed_gives_the_same_start(verifier: Verifier) -> None:
    env = torchrl_env(token_v0.parallel_env(config=CONFIG, verifier=verifier))
    first, other = env.reset(seed=1), env.reset(seed=2)
    assert (first["state"] == env.reset(seed=1)["state"]).all()
    assert (first["state"] != other["state"]).any()
    assert first["state"].shape == (3 * first["proposers", "observation", "observation"].shape[-1],)


def test_every_agent_is_in_one_group() -> None:
    assert group_map(["proposer_0", "solver_0"]) == {"proposers": ["proposer_0"], "solvers": ["solver_0"]}
