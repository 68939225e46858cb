"""Tests of `populora_env.vector`: many games, one call to the judge a phase."""

import copy
import pickle

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence
from scripted_judge import ScriptedJudge, answer_text, proposal_text

from populora_env.config import GameConfig
from populora_env.registration import PROPOSER_ID, SOLVER_ID
from populora_env.solo_envs import ProposerEnv, SolverEnv
from populora_env.text_agents import VECTOR_SIZE
from populora_env.vector import SoloVectorEnv, make_vec
from populora_env.verifier import Verifier

GAMES = 5


@pytest.fixture(scope="module")
def verifier():
    with Verifier() as shared:
        yield shared


def always(text):
    return lambda _: text


def scripted(judge=None, *, proposer=None, n=GAMES, **rules):
    proposer = proposer or always(proposal_text())
    return make_vec(n, proposer=proposer, verifier=judge or ScriptedJudge(), tasks="deduction", **rules)


@pytest.mark.parametrize(("view", "single"), [("solver", SolverEnv), ("proposer", ProposerEnv)])
def test_game_i_behaves_as_the_single_environment_of_seed_plus_i(view, single, verifier):
    config = GameConfig(rounds=3, solver_seats=2)
    vector = make_vec(GAMES, view=view, config=config, verifier=verifier)
    singles = [single(config=config, verifier=verifier) for _ in range(GAMES)]
    seen, infos = vector.reset(seed=7)
    for place, env in enumerate(singles):
        one, info = env.reset(seed=7 + place)
        assert_same(seen, infos, place, one, info)
    space = singles[0].action_space
    space.seed(0)
    episodes = 0
    for _ in range(12):
        actions = [space.sample() for _ in singles]
        seen, rewards, terminations, truncations, infos = vector.step(actions)
        assert not truncations.any()
        for place, (env, action) in enumerate(zip(singles, actions, strict=True)):
            one, reward, terminated, _, info = env.step(action)
            assert (rewards[place], terminations[place]) == (reward, terminated)
            assert infos["outcome"][place] == info["outcome"]
            assert infos["reward_parts"][place] == info["reward_parts"]
            if terminated:
                episodes += 1
                assert data_equivalence(infos["final_obs"][place], one, exact=True)
                assert infos["final_info"]["outcome"][place] == info["outcome"]
                one, info = env.reset()
            assert_same(seen, infos, place, one, info)
    assert episodes >= GAMES


def assert_same(seen, infos, place, one, info):
    assert np.array_equal(seen["observation"][place], one["observation"])
    assert seen["prompt"][place] == one["prompt"]
    for key in ("task", "round", "messages", "role"):
        assert infos[key][place] == info[key]
        assert infos[f"_{key}"][place]


def test_a_phase_is_one_call_to_the_judge():
    judge = ScriptedJudge()
    env = scripted(judge, rounds=2)
    env.reset(seed=0)
    assert judge.calls == [("proposals", GAMES)]
    env.step([answer_text("1")] * GAMES)
    assert judge.calls[1:] == [("answers", GAMES), ("proposals", GAMES)]
    env.step([answer_text("1")] * GAMES)
    assert judge.calls[3:] == [("answers", GAMES), ("proposals", GAMES)]


def test_shapes_spaces_and_masks():
    env = scripted(rounds=1)
    seen, infos = env.reset(seed=0)
    assert seen["observation"].shape == (GAMES, VECTOR_SIZE)
    assert seen["observation"].dtype == np.float32
    assert isinstance(seen["prompt"], tuple)
    assert env.observation_space.contains(seen)
    env.action_space.seed(0)
    actions = env.action_space.sample()
    assert len(actions) == GAMES
    assert env.action_space.contains(actions)
    seen, rewards, terminations, _, infos = env.step(actions)
    assert env.observation_space.contains(seen)
    assert rewards.shape == terminations.shape == (GAMES,)
    assert terminations.all()
    assert infos["_final_obs"].all()
    assert infos["_final_info"].all()
    assert all(seen["prompt"])
    assert not any(final["prompt"] for final in infos["final_obs"])


def test_only_games_that_end_have_a_final_observation():
    turns = iter([proposal_text()] * GAMES + ["junk"] * 2 + [proposal_text()] * 100)
    env = scripted(proposer=lambda _: next(turns), rounds=2)
    env.reset(seed=0)
    _, rewards, terminations, _, infos = env.step([answer_text("'right'")] * GAMES)
    assert rewards.tolist() == [1.0] * GAMES
    assert terminations.tolist() == [True, True, False, False, False]
    assert infos["_final_obs"].tolist() == terminations.tolist()
    assert infos["final_obs"][3] is None
    assert infos["round"].tolist() == [0, 0, 1, 1, 1]


def test_proposers_that_never_make_a_problem_are_given_up():
    with pytest.raises(RuntimeError, match="valid problem"):
        scripted(proposer=always("junk")).reset(seed=0)
    turns = iter([proposal_text()] * GAMES)
    env = scripted(proposer=lambda _: next(turns, "junk"), rounds=1)
    env.reset(seed=0)
    with pytest.raises(RuntimeError, match="valid problem"):
        env.step([""] * GAMES)


@pytest.mark.parametrize("actions", [[""] * 4, [""] * 6, [""] * 4 + [3], "text"])
def test_there_must_be_one_text_a_game_and_nothing_changes_otherwise(actions):
    env = scripted(rounds=2)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="must be"):
        env.step(actions)
    assert env.step([answer_text("'right'")] * GAMES)[1].tolist() == [1.0] * GAMES


@pytest.mark.parametrize("actions", [tuple, np.array, lambda texts: np.array(texts, dtype=object)])
def test_actions_may_be_any_sequence_of_texts(actions):
    env = scripted()
    env.reset(seed=0)
    assert env.step(actions([answer_text("'right'")] * GAMES))[1].tolist() == [1.0] * GAMES


def test_seeds():
    def prompts(seed, again=None):
        env = make_vec(3, verifier=ScriptedJudge(), tasks="deduction")
        return [env.reset(seed=seed)[0]["prompt"], env.reset(seed=again)[0]["prompt"]]

    assert prompts(1) == prompts([1, 2, 3])
    assert prompts(1)[0] != prompts(1)[1]
    assert prompts(1)[0] != prompts(2)[0]
    assert prompts(1, 1)[0] == prompts(1, 1)[1]
    with pytest.raises(ValueError, match="`seed`"):
        prompts([1])


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_copies_go_on_as_the_original(duplicate, verifier):
    env = make_vec(3, verifier=verifier)
    env.reset(seed=0)
    env.step(["junk"] * 3)
    other = duplicate(env)
    try:
        for _ in range(3):
            assert data_equivalence(env.step([answer_text("1")] * 3), other.step([answer_text("1")] * 3), exact=True)
    finally:
        other.close()


@pytest.mark.parametrize("env_id", [SOLVER_ID, PROPOSER_ID])
def test_gymnasium_makes_them(env_id, verifier):
    env = gymnasium.make_vec(env_id, num_envs=3, verifier=verifier, rounds=1)
    assert isinstance(env, SoloVectorEnv)
    env.reset(seed=0)
    assert env.step(["junk"] * 3)[1].tolist() == [-1.0] * 3
    env.close()


def test_autoreset_is_named_where_gymnasium_has_a_name():
    mode = scripted().metadata.get("autoreset_mode")
    assert mode is None if gymnasium.__version__.startswith("1.0") else mode.value == "SameStep"


def test_rendering_and_closing():
    judge = ScriptedJudge()
    env = scripted(judge, render_mode="ansi", n=2)
    env.reset(seed=0)
    env.step([answer_text("\x1b[2J")] * 2)
    assert all("\\x1b[2J" in text for text in env.render())
    env.close()
    assert judge.closed == 0
    assert scripted().render() is None
    own = make_vec(2, tasks="deduction")
    own.reset(seed=0)
    own.close()


@pytest.mark.parametrize(
    "arguments",
    [
        {"num_envs": 0},
        {"view": "spectator"},
        {"view": "proposer", "proposer": always("")},
        {"render_mode": "human"},
    ],
)
def test_what_makes_no_vector_is_refused(arguments):
    with pytest.raises(ValueError, match=r"must be|expected"):
        make_vec(**({"num_envs": 2} | arguments))
