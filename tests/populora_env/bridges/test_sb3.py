"""Token games as a `VecEnv`: MaskablePPO trains on them; SuperSuit takes them too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sb3_contrib", reason="needs the extra `bridges`")

from sb3_contrib import MaskablePPO

from populora_env import text_v0, token_v0
from populora_env.bridges.sb3 import TokenVecEnv
from populora_env.config import GameConfig
from populora_env.types import Task
from populora_env.verifier import Verifier

CONFIG = GameConfig(solver_seats=2, rounds=1, seed_problems=16, tasks=(Task.DEDUCTION,))
SEATS = 3


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier() as shared:
        yield shared


def games(verifier: Verifier, n: int = 2) -> TokenVecEnv:
    return TokenVecEnv(lambda: token_v0.parallel_env(config=CONFIG, verifier=verifier), n)


def legal_actions(masks: Any, rng: np.random.Generator) -> Any:
    return np.array([rng.choice(np.flatnonzero(mask)) for mask in masks])


def test_maskable_ppo_trains_and_plays_only_legal_tokens(verifier: Verifier) -> None:
    env = games(verifier)
    model = MaskablePPO("MlpPolicy", env, n_steps=16, batch_size=48, n_epochs=1, seed=0, device="cpu")
    before = [tensor.clone() for tensor in model.policy.parameters()]
    model.learn(2 * env.num_envs * 16)
    assert any((old != new).any() for old, new in zip(before, model.policy.parameters(), strict=True))
    seen = env.reset()
    for _ in range(20):
        masks = env.action_masks()
        actions, _ = model.predict(seen, action_masks=masks)
        assert masks[np.arange(env.num_envs), actions].all()
        seen, *_ = env.step(actions)
    env.close()


def test_rows_are_the_seats_of_each_game_and_games_begin_anew(verifier: Verifier) -> None:
    env, rng = games(verifier), np.random.default_rng(0)
    env.seed(7)
    seen = env.reset()
    assert seen.shape == (2 * SEATS, *env.observation_space.shape)
    masks = np.array(env.env_method("action_masks"))
    assert (masks == env.action_masks()).all()
    waiting = [1, 2, 4, 5]
    assert (masks[waiting].sum(axis=1) == 1).all()
    assert masks[waiting, 0].all()
    ended = 0
    paid = np.zeros(2 * SEATS)
    for _ in range(120):
        seen, rewards, dones, infos = env.step(legal_actions(env.action_masks(), rng))
        paid += rewards
        for game in (slice(0, SEATS), slice(SEATS, 2 * SEATS)):
            assert len(set(dones[game])) == 1
            if dones[game][0]:
                ended += 1
                assert all(info["terminal_observation"].shape == seen[0].shape for info in infos[game])
                assert env.action_masks()[game][0].sum() > 1
    assert ended >= 4
    assert paid.any()


def test_the_same_seed_gives_the_same_games(verifier: Verifier) -> None:
    env = games(verifier)
    starts = []
    for seed in (1, 1, 2):
        env.seed(seed)
        starts.append(env.reset())
    assert (starts[0] == starts[1]).all()
    assert (starts[0] != starts[2]).any()
    assert (starts[0][:SEATS] != starts[0][SEATS:]).any()


def test_what_has_no_mask_is_refused(verifier: Verifier) -> None:
    with pytest.raises(ValueError, match="expected a game with `action_mask`"):
        TokenVecEnv(lambda: text_v0.parallel_env(config=CONFIG, verifier=verifier))
    with pytest.raises(ValueError, match="`n_envs` must be at least 1"):
        games(verifier, 0)


def test_supersuit_takes_the_parallel_face_as_it_is(verifier: Verifier) -> None:
    supersuit = pytest.importorskip("supersuit", reason="needs the extra `bridges`")
    env = supersuit.pettingzoo_env_to_vec_env_v1(token_v0.parallel_env(config=CONFIG, verifier=verifier))
    rng = np.random.default_rng(1)
    seen, _ = env.reset(seed=3)
    ended = 0
    for _ in range(80):
        seen, _, terminations, _, _ = env.step(legal_actions(seen["action_mask"], rng))
        ended += int(terminations.all())
    assert ended >= 2
    assert seen["observation"].shape[0] == env.num_envs == SEATS
