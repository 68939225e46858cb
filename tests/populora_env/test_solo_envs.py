"""Tests of `populora_env.solo` and `populora_env.solo_envs`: one seat, the others held by policies."""

import copy
import pickle
import warnings

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env, data_equivalence
from scripted_judge import ScriptedJudge, answer_text, induction_text, proposal_text

import populora_env
from populora_env.config import GameConfig
from populora_env.registration import PROPOSER_ID, SOLVER_ID
from populora_env.seats import GeneratorProposer, GuessingSolver
from populora_env.solo_envs import ProposerEnv, SolverEnv
from populora_env.text_v0 import as_observation
from populora_env.types import Role, Task
from populora_env.verifier import Verifier


@pytest.fixture(scope="module")
def verifier():
    with Verifier() as shared:
        yield shared


class Scripted:
    """A policy that says its texts in turn, over and over, and keeps what it saw."""

    def __init__(self, *texts):
        """Say these."""
        self.texts = texts
        self.seen = []

    def __call__(self, observation):
        """Return the next text."""
        self.seen.append(observation)
        return self.texts[(len(self.seen) - 1) % len(self.texts)]


def solver_env(*proposals, **arguments):
    defaults = {
        "tasks": "deduction",
        "verifier": ScriptedJudge(),
        "proposer": Scripted(*proposals or [proposal_text()]),
    }
    return SolverEnv(**(defaults | arguments))


def proposer_env(*answers, **arguments):
    solvers = Scripted(*answers or [answer_text("'right'"), ""])
    return ProposerEnv(**({"tasks": "deduction", "verifier": ScriptedJudge(), "solvers": solvers} | arguments))


@pytest.mark.parametrize("env_id", [SOLVER_ID, PROPOSER_ID])
def test_gymnasium_finds_nothing_to_complain_of(env_id):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make(env_id)
        check_env(env.unwrapped)
        env.close()


@pytest.mark.parametrize("env_id", [SOLVER_ID, PROPOSER_ID])
def test_default_opponents_make_every_task_playable(env_id, verifier):
    results = []
    env = gymnasium.make(env_id, verifier=verifier, on_settled=results.append, rounds=30)
    env.action_space.seed(0)
    _, info = env.reset(seed=0)
    turns, done = 0, False
    while not done:
        before = info["task"]
        _, reward, done, truncated, info = env.step(env.action_space.sample())
        turns += 1
        assert info["outcome"]["task"] == before
        assert info["outcome"]["reward"] == reward == pytest.approx(sum(info["reward_parts"].values()))
        assert not truncated
    valid = [result for result in results if result.problem is not None]
    assert len(results) == 30
    assert turns == (30 if env_id == PROPOSER_ID else len(valid))
    assert {result.task for result in valid} == set(Task)
    assert len(valid) > 15


def test_a_solver_is_shown_a_problem_answers_once_and_is_paid():
    env = solver_env(rounds=2)
    seen, info = env.reset(seed=0)
    assert "return a" in seen["prompt"]
    assert (info["role"], info["task"], info["outcome"]) == ("solver", "deduction", {})
    assert as_observation(seen, info).prompt == seen["prompt"]
    _, reward, terminated, truncated, info = env.step(answer_text("'right'"))
    assert (reward, terminated, truncated, info["outcome"]["verdict"]) == (1.0, False, False, "ok")
    seen, reward, terminated, _, info = env.step("junk")
    assert (reward, terminated, seen["prompt"], info["messages"]) == (-1.0, True, "", [])
    with pytest.raises(ValueError, match="over"):
        env.step("")


def test_rounds_without_a_problem_are_skipped_and_leave_the_outcome_alone():
    env = solver_env(proposal_text(), "nonsense", proposal_text("return invalid"), rounds=3)
    env.reset(seed=0)
    _, reward, terminated, _, info = env.step(answer_text("1"))
    assert (reward, terminated, info["outcome"]["verdict"], info["outcome"]["round"]) == (-0.5, True, "wrong", 0)


def test_a_first_game_without_a_problem_is_followed_by_another():
    proposer = Scripted("nonsense", "nonsense", "nonsense", proposal_text())
    env = solver_env(proposer=proposer, rounds=2)
    seen, info = env.reset(seed=0)
    assert len(proposer.seen) == 4
    assert info["round"] == 1
    assert seen["prompt"]


def test_a_proposer_that_never_makes_a_problem_is_given_up():
    env = solver_env("nonsense", rounds=2)
    with pytest.raises(RuntimeError, match="valid problem"):
        env.reset(seed=0)


def test_a_proposer_is_paid_by_the_solve_rate():
    env = proposer_env(rounds=3, solver_seats=4)
    seen, info = env.reset(seed=0)
    assert info["role"] == "proposer"
    assert seen["prompt"].startswith("<propose deduction>")
    _, reward, terminated, _, info = env.step(proposal_text())
    assert (reward, terminated, info["outcome"]["solve_rate"]) == (0.5, False, 0.5)
    _, reward, *_ = env.step("nonsense")
    assert reward == -1.0
    _, reward, terminated, _, info = env.step(proposal_text("return invalid"))
    assert (reward, terminated, info["outcome"]["verdict"]) == (-1.0, True, "error:ValueError")


def test_different_policies_hold_the_other_seats():
    right, wrong = Scripted(answer_text("'right'")), Scripted(answer_text("2"))
    env = proposer_env(solvers=[right, wrong, wrong], solver_seats=3)
    env.reset(seed=0)
    _, reward, *_ = env.step(proposal_text())
    assert reward == pytest.approx(2 / 3)
    assert (len(right.seen), len(wrong.seen)) == (1, 2)
    env = solver_env(solvers=[right, wrong], solver_seats=3)
    env.reset(seed=0)
    _, reward, _, _, info = env.step("junk")
    assert (reward, info["outcome"]["solve_rate"]) == (-1.0, pytest.approx(1 / 3))
    assert {observation.role for observation in right.seen} == {Role.SOLVER}


@pytest.mark.parametrize("solvers", [[], [Scripted("")], [Scripted("")] * 5])
def test_there_must_be_a_policy_for_every_seat(solvers):
    with pytest.raises(ValueError, match="`solvers` must hold 4"):
        proposer_env(solvers=solvers, solver_seats=4)


def test_one_solver_seat_unless_told_otherwise():
    assert SolverEnv().config == GameConfig(solver_seats=1)
    assert SolverEnv(config=GameConfig()).config.solver_seats == 4
    assert ProposerEnv().config == GameConfig()
    assert (
        ProposerEnv(solver_seats=2, rounds=5, tasks=("deduction",), reward="linear").config.rewards.scheme == "linear"
    )
    with pytest.raises(TypeError, match="rules"):
        SolverEnv(seats=3)


@pytest.mark.parametrize("action", [None, 3, b"x"])
def test_what_is_no_text_is_refused_and_changes_nothing(action):
    for env, text in ((solver_env(), answer_text("'right'")), (proposer_env(), proposal_text())):
        env.reset(seed=0)
        with pytest.raises(ValueError, match="must be a str"):
            env.step(action)
        assert env.step(text)[1] > 0


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
@pytest.mark.parametrize("make", [SolverEnv, ProposerEnv])
def test_copies_go_on_as_the_original(make, duplicate, verifier):
    env = make(verifier=verifier, rounds=3)
    env.reset(seed=3)
    env.step("junk")
    other = duplicate(env)
    try:
        for _ in range(2):
            assert data_equivalence(env.step(answer_text("1")), other.step(answer_text("1")), exact=True)
        assert data_equivalence(env.reset(), other.reset(), exact=True)
    finally:
        other.close()


def test_the_default_opponents_are_the_seeded_ones():
    env = SolverEnv(tasks="deduction", verifier=ScriptedJudge())
    prompts = [env.reset(seed=seed)[0]["prompt"] for seed in (1, 1, 2)]
    assert prompts[0] == prompts[1] != prompts[2]
    config = GameConfig(solver_seats=1, tasks=(Task.DEDUCTION,))
    own = SolverEnv(config=config, proposer=GeneratorProposer(config, 0), verifier=ScriptedJudge())
    assert own.reset(seed=1)[0]["prompt"] != own.reset(seed=1)[0]["prompt"]


def test_rendering_shows_the_round_of_the_last_turn(capsys):
    env = solver_env(proposal_text(), "nonsense", rounds=3, render_mode="ansi")
    env.reset(seed=0)
    assert env.render() == "round 1 of 3: deduction, waiting for solver_0"
    env.step(answer_text("\x1b[2J"))
    lines = env.render().split("\n")
    assert lines[0] == "round 1: deduction"
    assert "      \\x1b[2J" in lines
    human = solver_env(rounds=1, render_mode="human")
    human.reset(seed=0)
    human.step("")
    assert "solver_0    no readable answer" in capsys.readouterr().out
    with pytest.raises(ValueError, match="render_mode"):
        solver_env(render_mode="rgb_array")


def test_an_own_verifier_is_closed_and_a_shared_one_left_open():
    judge = ScriptedJudge()
    env = solver_env(verifier=judge)
    env.reset(seed=0)
    env.close()
    assert judge.closed == 0
    own = SolverEnv(tasks="deduction")
    own.reset(seed=0)
    own.close()
    own.close()
    assert own.reset(seed=0)[0]["prompt"]
    own.close()


def test_every_style_and_task_is_playable_from_either_seat(verifier):
    for style in ("compact", "chat"):
        for task in Task:
            config = GameConfig(style=style, tasks=(task,), rounds=2, solver_seats=1)
            env = SolverEnv(config=config, verifier=verifier)
            seen, info = env.reset(seed=0)
            guess = GuessingSolver(config, 0)(as_observation(seen, info))
            assert env.step(guess)[4]["outcome"]["verdict"] != "format:no answer"
            assert seen["prompt"]


def test_the_package_offers_them():
    assert (populora_env.SolverEnv, populora_env.ProposerEnv) == (SolverEnv, ProposerEnv)
    assert induction_text()
