"""PettingZoo's own checks on all faces, with the real verifier, whatever versions are installed.

Each check is believed only if random play in it reached the solvers: an environment in which every proposal is invalid
passes them all.
"""

from types import SimpleNamespace

import pytest
from faces import Maker
from pettingzoo.test import api_test, max_cycles_test, parallel_api_test, parallel_seed_test, render_test, seed_test
from pettingzoo.test.state_test import state_test
from scripted_judge import ScriptedJudge

import populora_env
from populora_env import spaces, text_v0, token_v0
from populora_env.text_agents import PROPOSER
from populora_env.text_parallel import TextParallelEnv
from populora_env.text_v0 import TextEnv
from populora_env.token_grammar import Token
from populora_env.token_parallel import TokenParallelEnv
from populora_env.token_v0 import TokenEnv
from populora_env.types import Task
from populora_env.verifier import Verifier

ROUNDS = 30
OF_TOKENS = 0.95
"""Share of rounds that reach the solvers where random play is legal by construction."""

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning:pettingzoo.test.api_test"),
    pytest.mark.filterwarnings("ignore::UserWarning:pettingzoo.test.state_test"),
]


@pytest.fixture(scope="module")
def verifier():
    with Verifier() as shared:
        yield shared


# One agent after the other


@pytest.mark.parametrize("actions", range(12))
def test_either_check_of_default_text_reaches_the_solvers(actions, verifier):
    for check in (lambda make: api_test(make()), seed_test):
        make = Maker(TextEnv, verifier, actions=100 * actions)
        check(make)
        make.assert_reached()


@pytest.mark.parametrize("style", ["compact", "chat"])
def test_text_api_and_seed(style, verifier):
    rounds = 2 * ROUNDS
    make = Maker(TextEnv, verifier, rounds=rounds, style=style)
    api_test(make())
    make.assert_reached(rounds=rounds)
    make.results.clear()
    seed_test(make)
    make.assert_reached(rounds=2 * rounds)
    assert {result.task for result in make.results if result.problem is not None} == set(Task)
    assert {"ok", "wrong", "format"} <= make.statuses()


@pytest.mark.parametrize("task", Task)
def test_token_api_and_seed(task, verifier):
    make = Maker(TokenEnv, verifier, tasks=(task,), rounds=20, solver_seats=2)
    api_test(make(), num_cycles=150)
    seed_test(make, num_cycles=100)
    make.assert_reached(OF_TOKENS, rounds=40)
    assert make.statuses() == {"ok", "wrong"}


# Phase by phase


@pytest.mark.parametrize("style", ["compact", "chat"])
def test_text_parallel_api(style, verifier):
    make = Maker(TextParallelEnv, verifier, rounds=ROUNDS, style=style)
    parallel_api_test(make(), num_cycles=200)
    make.assert_reached(rounds=2 * ROUNDS)
    assert {result.task for result in make.results if result.problem is not None} == set(Task)


def test_text_parallel_seed(verifier):
    make = Maker(TextParallelEnv, verifier, rounds=1)
    for _ in range(5):  # pettingzoo looks at one step; `test_determinism` looks at many
        parallel_seed_test(make)


@pytest.mark.filterwarnings("error::UserWarning:pettingzoo")
def test_token_parallel_api_and_seed(verifier):
    make = Maker(TokenParallelEnv, verifier, rounds=6)
    parallel_api_test(make(), num_cycles=200)
    make.assert_reached(OF_TOKENS, rounds=12)
    parallel_seed_test(make, num_cycles=300)
    assert {result.task for result in make.results} == set(Task)


# All faces


@pytest.mark.parametrize("face", [text_v0, token_v0])
def test_what_the_makers_make(face):
    for make in (face.env, face.raw_env):
        env = make(rounds=4)
        api_test(env, num_cycles=20)
        env.close()
        seed_test(lambda make=make: make(max_cycles=4), num_cycles=20)
    parallel_api_test(face.parallel_env(rounds=4), num_cycles=60)


def test_the_package_makes_the_text_face():
    assert (populora_env.env, populora_env.parallel_env) == (text_v0.env, text_v0.parallel_env)


@pytest.mark.parametrize("kind", [TextEnv, TextParallelEnv, TokenEnv, TokenParallelEnv])
def test_render(kind, verifier, capsys):
    make = Maker(kind, verifier, rounds=ROUNDS, solver_seats=1)
    if kind in (TextEnv, TokenEnv):
        render_test(make)
    else:  # the check plays by the AEC interface
        for mode in kind.metadata["render_modes"]:
            env = make(render_mode=mode)
            env.reset(seed=0)
            for _ in range(20):
                env.step({agent: env.action_space(agent).sample() for agent in env.agents})
                assert isinstance(env.render(), str if mode == "ansi" else type(None))
    make.assert_reached(rounds=1 if kind in (TokenEnv, TokenParallelEnv) else 5)  # the check takes a few steps
    assert "solved it" in capsys.readouterr().out


@pytest.mark.parametrize(("kind", "parallel"), [(TextEnv, TextParallelEnv), (TokenEnv, TokenParallelEnv)])
def test_state(kind, parallel, verifier):
    make = Maker(kind, verifier, rounds=ROUNDS)
    state_test(make(), Maker(parallel, verifier, rounds=2)())
    make.assert_reached(rounds=5 if kind is TextEnv else 1)


def test_max_cycles_of_text_are_rounds_where_every_proposal_is_valid(verifier, monkeypatch):
    """The check asks that each agent acts in each cycle; one round is one AEC cycle, and two parallel steps."""
    monkeypatch.setattr(spaces, "_JUNK_SHARE", 0.0)
    monkeypatch.setattr(spaces, "_OTHER_ROLE_SHARE", 0.0)
    rules = {"tasks": ("deduction", "abduction"), "verifier": verifier}
    face = SimpleNamespace(
        env=lambda max_cycles: text_v0.env(max_cycles=max_cycles, **rules),
        parallel_env=lambda max_cycles: text_v0.parallel_env(max_cycles=max_cycles // 2, **rules),
    )
    max_cycles_test(face)


def test_max_cycles_of_tokens_are_rounds_where_every_agent_writes_as_many():
    """The check asks for one action of each agent in each cycle; here a round of four tokens each is four cycles.

    In the parallel face a round of malformed proposals is one step.
    """

    def scripted(env, script):
        for agent in env.possible_agents:
            tokens = iter(script[agent == PROPOSER] * 99)
            env.action_space(agent).sample = lambda tokens=tokens: next(tokens)
        return env

    answer = [Token.NEGATIVE, Token.MORE, Token.DIGIT_1, Token.DIGIT_2]
    proposal = [Token.TAKES_INT, Token.RETURN, Token.ABSOLUTE, Token.DIGIT_1]
    rules = {"verifier": ScriptedJudge(), "tasks": ("deduction",)}
    face = SimpleNamespace(
        env=lambda max_cycles: scripted(token_v0.env(max_cycles=max_cycles // 4, **rules), [answer, proposal]),
        parallel_env=lambda max_cycles: scripted(token_v0.parallel_env(max_cycles=max_cycles, **rules), [[0], [0]]),
    )
    max_cycles_test(face)
