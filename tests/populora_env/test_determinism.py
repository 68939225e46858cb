"""The same seed and actions give the same episode, over many steps, in every process."""

import hashlib
import json
import os
import subprocess
import sys

import numpy as np

from populora_env import text_v0
from populora_env.solo_envs import ProposerEnv, SolverEnv
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


def parallel_trace(verifier):
    env = text_v0.parallel_env(verifier=verifier, rounds=5, solver_seats=2)
    for place, agent in enumerate(env.possible_agents):
        env.action_space(agent).seed(place)
    seen = [env.reset(seed=3)]
    for _ in range(STEPS):
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
            parallel_trace(verifier),
            solo_trace(SolverEnv(verifier=verifier, solver_seats=2)),
            solo_trace(ProposerEnv(verifier=verifier, solver_seats=2)),
            vector_trace(verifier),
        ]
    sys.stdout.write("\n".join(map(digest, traces)))


def test_processes_with_different_hash_seeds_agree_over_many_steps():
    outputs = set()
    for hash_seed in ("0", "1"):
        command = [sys.executable, "-c", "import test_determinism; test_determinism.main()"]
        path = os.pathsep.join([os.path.dirname(__file__), *sys.path])
        environ = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": path}
        outputs.add(subprocess.run(command, env=environ, check=True, capture_output=True, text=True).stdout)
    assert len(outputs) == 1
    assert len(set(outputs.pop().split())) == 4
