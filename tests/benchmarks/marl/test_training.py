"""The loop with the real parts: games, TorchRL's losses, and evaluations that are the same for all."""

from __future__ import annotations

import itertools

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torchrl")

from benchmarks.marl.algorithms import TEAM_ALGORITHMS  # noqa: E402
from benchmarks.marl.config import QLearningConfig, TrainingConfig  # noqa: E402
from benchmarks.marl.environments import ENVIRONMENTS  # noqa: E402
from benchmarks.marl.games import Games  # noqa: E402
from benchmarks.marl.learners import Shape  # noqa: E402
from benchmarks.marl.summary import Job  # noqa: E402
from benchmarks.marl.training import evaluate, make_learner, play_and_learn  # noqa: E402
from populora_env import Verifier  # noqa: E402

SMALL = TrainingConfig(
    batches=2, games=4, steps=8, points=2, curve_episodes=4, episodes=8, q_learning=QLearningConfig(updates=2)
)


def first_legal(seen):
    return seen["agents", "action_mask"].int().argmax(-1)


def test_games_are_stacked_and_begin_anew() -> None:
    with Verifier() as verifier:
        games = Games(ENVIRONMENTS["token-team"], games=3, seed=0, verifier=verifier)
        seen = games.look()
        assert seen["agents", "observation"].shape == (3, 3, games.width)
        assert seen["agents", "action_mask"].shape == (3, 3, games.choices)
        assert torch.equal(seen["state"], seen["agents", "observation"].flatten(1))
        assert seen["agents", "action_mask"][:, 1:].sum().item() == 6  # who waits has one choice
        steps = []
        while not steps or not any(steps[-1].over):
            steps.append(games.step(first_legal(games.look())))
        assert steps[-1].after["terminated"].flatten().tolist() == steps[-1].over
        rewards = steps[-1].after["agents", "reward"]
        assert torch.equal(rewards, rewards[:, :1].expand_as(rewards))  # a team has one reward
        assert torch.equal(games.look()["agents", "action_mask"][:, 1:].sum(-1), torch.ones(3, 2))
        games.close()


def test_proposals_of_an_evaluation_are_the_same_whoever_solves() -> None:
    with Verifier() as verifier:
        programs = [programs_met(verifier, last=last) for last in (False, True)]
    least = min(map(len, programs))
    assert least >= 2
    assert programs[0][:least] == programs[1][:least]


def programs_met(verifier: Verifier, *, last: bool) -> list[bytes]:
    """Return what solvers see first in the rounds of one game, who always write the first or the last legal token."""
    met: list[bytes] = []
    waited = True

    def choose(seen):
        nonlocal waited
        mask = seen["agents", "action_mask"].int()
        waits = mask[0, 1].sum().item() == 1
        if waited and not waits:
            met.append(seen["agents", "observation"][0, 1].numpy().tobytes())
        waited = waits
        return mask.shape[-1] - 1 - mask.flip(-1).argmax(-1) if last else mask.argmax(-1)

    evaluate(ENVIRONMENTS["token-individual"], choose, 1, 3, verifier)
    return met


def test_the_first_legal_answer_scores_the_same_each_time() -> None:
    job = Job(seed=1, environment="token-individual", algorithm="first")
    with Verifier() as verifier:
        one, two = (play_and_learn(job, SMALL, verifier) for _ in range(2))
    assert one.score == two.score
    assert 0.0 <= one.score <= 1.0


def test_an_unknown_algorithm_is_refused() -> None:
    shape = Shape(kinds=((0,),), width=2, choices=2, gamma=1.0)
    with pytest.raises(ValueError, match="`algorithm` must be"):
        make_learner("maddpg", shape, SMALL)


@pytest.mark.slow
def test_every_algorithm_learns_a_few_batches_and_repeats_itself() -> None:
    with Verifier() as verifier:
        for name, algorithm in itertools.product(
            ("token-zero_sum", "token-team"), ("ippo", "mappo", "iql", "vdn", "qmix")
        ):
            if algorithm in TEAM_ALGORITHMS and not ENVIRONMENTS[name].team:
                continue
            job = Job(seed=3, environment=name, algorithm=algorithm)
            found = play_and_learn(job, SMALL, verifier)
            assert [steps for steps, _ in found.curve] == [0, 32, 64]
            assert found.score == found.curve[-1][1]
            assert 0.0 <= found.score <= 1.0
        assert play_and_learn(job, SMALL, verifier).curve == found.curve


@pytest.mark.slow
@pytest.mark.parametrize("name", ["simple_spread", "simple_speaker_listener"])
def test_games_of_mpe2_are_filled_up_to_one_shape_and_learned_from(name: str) -> None:
    pytest.importorskip("mpe2")
    for algorithm in ("mappo", "qmix"):
        found = play_and_learn(Job(seed=3, environment=name, algorithm=algorithm), SMALL, None)
        assert all(score < 0 for _, score in found.curve)
