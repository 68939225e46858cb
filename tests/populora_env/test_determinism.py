"""The same seed and actions give the same episode, over many steps, in every process."""

import hashlib
import json
import sys

import numpy as np
import pytest
from faces import make, outputs_of_two_processes, seed_actions

from populora_env.config import GameConfig
from populora_env.solo_envs import ProposerEnv, SolverEnv
from populora_env.text_parallel import TextParallelEnv
from populora_env.text_v0 import TextEnv
from populora_env.token_parallel import TokenParallelEnv
from populora_env.token_v0 import TokenEnv
from populora_env.vector import make_vec
from populora_env.verifier import Verifier

STEPS = 24


def digest(parts):
    """Return a hash of anything that has a plain form; NaN and objects without one are refused."""

    def plain(value):
        if isinstance(value, np.ndarray | np.generic):
            return value.tolist()
        raise TypeError(f"no plain form: {value!r}")

    return hashlib.sha256(json.dumps(parts, default=plain, allow_nan=False).encode()).hexdigest()


def aec_trace(kind, verifier, *, seed, steps):
    env = kind(config=GameConfig(rounds=4), verifier=verifier)
    seed_actions(env, seed)
    env.reset(seed=seed)
    seen = []
    for _ in range(steps):
        if not env.agents:
            env.reset()
        agent = env.agent_selection
        seen += [agent, env.last(), env.rewards, env.state()]
        env.step(None if env.terminations[agent] else env.action_space(agent).sample())
    return seen


def parallel_trace(kind, verifier, *, seed, steps):
    env = kind(config=GameConfig(rounds=5, solver_seats=2), verifier=verifier)
    seed_actions(env, seed)
    seen = [env.reset(seed=seed)]
    for _ in range(steps):
        if not env.agents:
            seen.append(env.reset())
        seen.append(env.step({agent: env.action_space(agent).sample() for agent in env.agents}))
        seen.append(env.state())
    return seen


def solo_trace(env):
    env.action_space.seed(0)
    seen = [env.reset(seed=3)]
    for _ in range(STEPS):
        seen.append(env.step(env.action_space.sample()))
        if seen[-1][2]:
            seen.append(env.reset())
    return seen


def vector_trace(verifier):
    env = make_vec(4, verifier=verifier, rounds=2)
    env.action_space.seed(0)
    return [env.reset(seed=3), *(env.step(env.action_space.sample()) for _ in range(STEPS // 4))]


def main():
    with Verifier() as verifier:
        traces = [
            aec_trace(TextEnv, verifier, seed=7, steps=200),
            aec_trace(TokenEnv, verifier, seed=7, steps=150),
            parallel_trace(TextParallelEnv, verifier, seed=3, steps=STEPS),
            parallel_trace(TokenParallelEnv, verifier, seed=7, steps=150),
            solo_trace(SolverEnv(verifier=verifier, solver_seats=2)),
            solo_trace(ProposerEnv(verifier=verifier, solver_seats=2)),
            vector_trace(verifier),
        ]
    sys.stdout.write("\n".join(map(digest, traces)))


def test_processes_with_different_hash_seeds_agree_over_many_steps():
    (output,) = outputs_of_two_processes("test_determinism")
    assert len(set(output.split())) == 7


@pytest.mark.parametrize("kind", [TextEnv, TextParallelEnv, TokenEnv, TokenParallelEnv])
def test_seeds_matter_and_resets_without_one_go_on(kind):
    def references(seed):
        env = make(kind, seed=seed)
        first = env.game.round.references
        env.reset()
        return first, env.game.round.references

    assert references(1) == references(1)
    assert references(1) != references(2)
    assert len(set(references(1))) == 2
