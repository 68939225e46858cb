"""Tests of `populora_env.registration`: ids, and what is loaded for them."""

import subprocess
import sys

import gymnasium
import pettingzoo
import pytest

from populora_env.registration import PROPOSER_ID, SOLVER_ID, TEXT_ID, register_environments
from populora_env.solo_envs import ProposerEnv, SolverEnv

needs_registry = pytest.mark.skipif("register" not in pettingzoo.__all__, reason="pettingzoo before 1.27: no registry")


def run(program):
    return subprocess.run([sys.executable, "-W", "error", "-c", program], check=True, capture_output=True, text=True)


def test_importing_the_package_registers_and_loads_no_environment():
    done = run(
        "import sys, populora_env, gymnasium\n"
        f"assert {{{SOLVER_ID!r}, {PROPOSER_ID!r}}} <= set(gymnasium.registry)\n"
        "print([m for m in sys.modules if m.startswith('populora_env.')])"
    )
    loaded = {"populora_env.config", "populora_env.registration", "populora_env.types"}
    assert set(eval(done.stdout)) == loaded


def test_gymnasium_can_be_told_the_module():
    done = run(f"import gymnasium; print(gymnasium.make('populora_env:{SOLVER_ID}', rounds=7).unwrapped.config.rounds)")
    assert done.stdout == "7\n"


def test_gymnasium_makes_the_solo_views():
    assert isinstance(gymnasium.make(SOLVER_ID).unwrapped, SolverEnv)
    assert isinstance(gymnasium.make(PROPOSER_ID, solver_seats=2, rounds=5).unwrapped, ProposerEnv)


@needs_registry
def test_pettingzoo_makes_the_text_faces():
    env = pettingzoo.make("aec", TEXT_ID, max_cycles=2, solver_seats=1)
    assert (env.unwrapped.config.rounds, env.possible_agents) == (2, ["proposer_0", "solver_0"])
    parallel = pettingzoo.make("parallel", TEXT_ID, rounds=2)
    assert parallel.config.rounds == 2


def test_registering_twice_changes_nothing(recwarn):
    register_environments()
    assert not recwarn.list
