"""Ways to make, play and look at the PettingZoo faces in tests, text and token alike."""

import copy
import os
import subprocess
import sys
from collections import defaultdict

from scripted_judge import ScriptedJudge

from populora_env.config import GameConfig
from populora_env.types import Task

DEDUCTION = (Task.DEDUCTION,)


def make(kind, judge=None, *, seed=0, **rules):
    """Make an environment of a class with two solvers, two rounds and a judge that runs nothing, and reset it."""
    settings = {name: rules.pop(name) for name in ("reward_mode", "render_mode") if name in rules}
    config = GameConfig(**{"solver_seats": 2, "tasks": DEDUCTION, "rounds": 2} | rules)
    env = kind(config=config, verifier=ScriptedJudge() if judge is None else judge, **settings)
    env.reset(seed=seed)
    return env


def seed_actions(env, seed=0):
    """Seed the samples of all agents."""
    for place, agent in enumerate(env.possible_agents):
        env.action_space(agent).seed(seed + place)


class Maker:
    """Makes environments with seeded samples, and counts the rounds that reach the solvers."""

    def __init__(self, kind, verifier, *, actions=0, **rules):
        """Make environments of this class; `actions` seeds the samples."""
        self.kind, self.verifier, self.config, self.results = kind, verifier, GameConfig(**rules), []
        self.actions = actions

    def __call__(self, render_mode=None):
        """Make one."""
        env = self.kind(
            config=self.config, verifier=self.verifier, render_mode=render_mode, on_settled=self.results.append
        )
        seed_actions(env, self.actions)
        return env

    def assert_reached(self, share=0.2, *, rounds=1):
        """Check that at least this share of at least so many rounds had a valid problem."""
        assert len(self.results) >= rounds
        assert sum(result.problem is not None for result in self.results) / len(self.results) >= share

    def statuses(self):
        """Return the statuses of all answers."""
        return {verdict.status for result in self.results for verdict in result.attempt_verdicts}


def play(env, actions):
    """Step an AEC environment; return (agent, reward, terminated) as `last()` gave them before each action."""
    seen = []
    for action in actions:
        _, reward, terminated, truncated, _ = env.last()
        assert not truncated
        seen.append((env.agent_selection, reward, terminated))
        env.step(action)
    return seen


def paid_by(results):
    """Return what the game paid each agent over these rounds."""
    paid = defaultdict(float)
    for result in results:
        paid["proposer_0"] += result.proposer_reward
        for seat, reward in enumerate(result.solver_rewards):
            paid[f"solver_{seat}"] += reward
    return paid


def all_seen(env):
    """Everything that agents of an AEC environment can get at, whose turn it is included."""
    observations = {agent: env.observe(agent) for agent in env.agents}
    flags = [env.rewards, env.terminations, env.truncations, env._cumulative_rewards]
    return copy.deepcopy([env.agent_selection, observations, env.state(), env.infos, *flags])


def outputs_of_two_processes(module):
    """Return what `module.main()` writes under either of two hash seeds: one text if they agree."""
    outputs = set()
    for hash_seed in ("0", "1"):
        command = [sys.executable, "-c", f"import {module}; {module}.main()"]
        path = os.pathsep.join([os.path.dirname(__file__), *sys.path])
        environ = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": path}
        outputs.add(subprocess.run(command, env=environ, check=True, capture_output=True, text=True).stdout)
    return outputs
