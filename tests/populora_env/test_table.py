"""Tests of `populora_env.table`: what all PettingZoo faces have in common, whatever is spoken."""

import pytest
from faces import make
from scripted_judge import ScriptedJudge, answer_text, proposal_text

from populora_env import text_v0, token_v0
from populora_env.text_agents import PROPOSER
from populora_env.text_parallel import TextParallelEnv
from populora_env.text_v0 import TextEnv
from populora_env.token_grammar import Token
from populora_env.token_parallel import TokenParallelEnv
from populora_env.token_v0 import TokenEnv

FACES = pytest.mark.parametrize("kind", [TextEnv, TextParallelEnv, TokenEnv, TokenParallelEnv])
OVER = {TextEnv: "nonsense", TokenEnv: Token.NOOP}
"""An action that ends the first round of an AEC face."""


@FACES
def test_spaces_are_the_same_objects_at_every_call_and_alike_for_all(kind):
    env = make(kind)
    for agent in env.possible_agents:
        assert env.action_space(agent) is env.action_space(agent)
        assert env.observation_space(agent) is env.observation_space(agent)
        assert env.observation_space(agent) == env.observation_space(PROPOSER)
        assert env.observation_space(agent).contains(env.observation_space(agent).sample())
    assert len({id(env.action_space(agent)) for agent in env.possible_agents}) == len(env.possible_agents)
    assert env.state_space.contains(env.state())
    assert env.state_space.shape == (3 * env.observation_space(PROPOSER)["observation"].shape[0],)


@FACES
def test_flags_are_python_bools_and_rewards_floats(kind):
    env = make(kind, rounds=1)
    if kind in OVER:
        env.step(OVER[kind])
        rewards, terminations, truncations = env.rewards, env.terminations, env.truncations
    else:
        _, rewards, terminations, truncations, _ = env.step({PROPOSER: "" if kind is TextParallelEnv else Token.NOOP})
    assert all(terminations.values())
    assert {type(flag) for flag in (*terminations.values(), *truncations.values())} == {bool}
    assert {type(reward) for reward in rewards.values()} == {float}


def test_a_shared_verifier_is_left_open_and_an_own_one_is_closed_and_can_be_used_again():
    judge = ScriptedJudge()
    env = make(TextEnv, judge)
    env.step(proposal_text())
    env.close()
    assert judge.closed == 0
    own = text_v0.raw_env(solver_seats=1, tasks=("deduction",))
    for _ in range(2):
        own.reset(seed=0)
        own.step(proposal_text())
        own.step(answer_text("1"))
        assert own.rewards["solver_0"] == 1.0
        own.close()
        own.close()


@FACES
def test_rendering_without_a_mode_warns_and_unknown_ones_are_refused(kind):
    env = make(kind)
    with pytest.warns(UserWarning, match="render_mode"):
        assert env.render() is None
    with pytest.raises(ValueError, match="`render_mode` must be"):
        make(kind, render_mode="rgb_array")


@pytest.mark.parametrize("face", [text_v0, token_v0])
def test_makers_take_rules_and_name_the_agents(face):
    env = face.env(max_cycles=7, solver_seats=2)
    assert env.possible_agents == ["proposer_0", "solver_0", "solver_1"]
    assert env.unwrapped.config.rounds == 7
    assert face.parallel_env(max_cycles=5).config.rounds == 5
    assert str(env) == str(face.parallel_env()) == f"populora_{face.__name__.rsplit('.', 1)[1]}"
    with pytest.raises(TypeError, match="expected rules among"):
        face.env(solvers=2)
    with pytest.raises(ValueError, match="rounds"):
        face.env(max_cycles=0)
