"""What a token counts by hand, and what a report says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from populora_agents.config import LengthHandling, TrainerConfig
from populora_agents.lesson import Lesson, token_weights
from populora_agents.scoring import Scores
from populora_agents.types import Rollout

HANDLINGS: tuple[LengthHandling, ...] = ("token_mean", "sequence_mean", "constant")
# Member 0 has rollouts of 1 and 3 tokens, member 1 one of 2 and an empty one.
LENGTHS, MEMBERS = np.array([1, 3, 2, 0]), np.array([0, 0, 1, 1])


@pytest.mark.parametrize(
    ("length", "expected"),
    [
        ("token_mean", [1 / 4, 1 / 4, 1 / 2, 0]),
        ("sequence_mean", [1 / 2, 1 / 6, 1 / 4, 0]),
        ("constant", [1 / 20, 1 / 20, 1 / 20, 0]),
    ],
)
def test_token_weights_by_hand(length: LengthHandling, expected: list[float]) -> None:
    np.testing.assert_allclose(token_weights(LENGTHS, MEMBERS, length, 10), expected, rtol=1e-15)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), max_size=12))
def test_a_members_tokens_count_one_in_all(rows: list[tuple[int, int]]) -> None:
    lengths, members = (np.array([row[k] for row in rows], dtype=np.int64) for k in range(2))
    for length in HANDLINGS:
        weights = token_weights(lengths, members, length, 5)
        assert np.isfinite(weights).all()
        for member in set(members.tolist()):
            total = (weights * lengths)[members == member].sum()
            assert total <= 1 + 1e-12
            if length == "token_mean" and lengths[members == member].any():
                assert total == pytest.approx(1)


def rollout(member: str, logprobs: tuple[float, ...]) -> Rollout:
    return Rollout(
        member_id=member,
        batch="b",
        group_id="g",
        prompt_ids=(1,),
        token_ids=tuple(range(len(logprobs))),
        logprobs=logprobs,
        reward=0.0,
    )


def squared(
    logprobs: torch.Tensor, sampled_logprobs: torch.Tensor, advantages: torch.Tensor
) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """An objective of nobody: the advantage times the square of the log-probability."""
    return advantages * logprobs**2, {"clipped": (logprobs < -2).double(), "surprise": sampled_logprobs.detach() * 2}


def test_a_report_by_hand() -> None:
    rollouts = [rollout("b", (-1.0, -3.0)), rollout("a", (-2.0,)), rollout("b", (-5.0,)), rollout("c", ())]
    config = TrainerConfig(kl_coefficient=0.0)
    slots = {"a": 0, "b": 1, "c": 2}
    lesson = Lesson(rollouts, [2.0, 1.0, 0.0, 1.0], slots, dict.fromkeys(slots, 0.1), config)
    assert lesson.members == ("a", "b", "c")
    assert lesson.active == ("a", "b")  # c has no token, b's second rollout no advantage
    (batch,) = lesson.micro_batches(100, shared_row_tokens=0)
    assert batch.places == (1, 0)
    logprobs = torch.tensor([-2.0, -1.5, -3.0], dtype=torch.float64, requires_grad=True)
    scores = Scores(logprobs, torch.tensor([0.25, 1.0, 3.0], dtype=torch.float64))
    lesson.loss(batch, scores, None, squared).backward()
    # a: one token of weight 1. b: three tokens of weight 1/3, two computed, each with advantage 2.
    assert logprobs.grad is not None
    assert logprobs.grad.tolist() == pytest.approx([2 * -2.0, 2 * 2 * -1.5 / 3, 2 * 2 * -3.0 / 3])
    report = lesson.report({"a": 4.0, "b": 5.0})
    a, b, c = (report[name] for name in "abc")
    assert (a.rollouts, a.tokens, a.loss, a.grad_norm) == (1, 1, 4.0, 4.0)
    assert (b.rollouts, b.tokens, b.grad_norm) == (2, 3, 5.0)
    assert b.loss == pytest.approx(2 * (1.5**2 + 9) / 3)
    assert b.clip_fraction == pytest.approx(1 / 3)
    assert (b.entropy, b.entropy_estimate, b.logprob_gap) == (2.0, 3.0, 0.25)
    assert b.extra == {"surprise": -4.0}
    assert a.kl is b.kl is None
    assert (c.rollouts, c.tokens, c.loss, c.grad_norm, c.entropy_estimate) == (1, 0, 0.0, 0.0, 0.0)
    assert c.entropy is c.logprob_gap is None


def test_an_objective_cannot_overwrite_the_reports_own_numbers() -> None:
    def boasting(
        logprobs: torch.Tensor, sampled_logprobs: torch.Tensor, advantages: torch.Tensor
    ) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        loss, metrics = squared(logprobs, sampled_logprobs, advantages)
        return loss, metrics | dict.fromkeys(
            ("loss", "computed", "entropy", "gap"), torch.full_like(loss, 7.0).detach()
        )

    reports = []
    for objective in (squared, boasting):
        lesson = Lesson([rollout("a", (-1.0, -3.0))], [2.0], {"a": 0}, {"a": 0.1}, TrainerConfig(kl_coefficient=0.0))
        (batch,) = lesson.micro_batches(100, shared_row_tokens=0)
        logprobs = torch.tensor([-2.0, -1.5], dtype=torch.float64, requires_grad=True)
        lesson.loss(batch, Scores(logprobs, torch.tensor([1.0, 3.0], dtype=torch.float64)), None, objective)
        reports.append(lesson.report({"a": 4.0}))
    assert reports[0] == reports[1]


def test_with_kl_every_rollout_is_computed_and_reported() -> None:
    rollouts = [rollout("a", (-1.0,)), rollout("a", (-2.0,))]
    lesson = Lesson(rollouts, [0.0, 0.0], {"a": 0}, {"a": 0.1}, TrainerConfig(kl_coefficient=0.5))
    assert lesson.active == ("a",)
    (batch,) = lesson.micro_batches(100, shared_row_tokens=100)
    logprobs = torch.tensor([-1.0, -2.0], dtype=torch.float64, requires_grad=True)
    reference = torch.tensor([-1.0, -1.0], dtype=torch.float64)
    loss = lesson.loss(batch, Scores(logprobs, torch.zeros(2)), reference, squared)
    divergence = np.e - 1 - 1
    assert loss.item() == pytest.approx(0.5 * divergence / 2)
    assert lesson.report({})["a"].kl == pytest.approx(divergence / 2)


def test_one_member_at_a_time() -> None:
    rollouts = [rollout("a", (-1.0,)), rollout("b", (-2.0,))]
    slots = {"a": 0, "b": 1}
    lesson = Lesson(rollouts, [1.0, 1.0], slots, dict.fromkeys(slots, 0.1), TrainerConfig())
    assert [batch.places for batch in lesson.micro_batches(100, shared_row_tokens=0, member="b")] == [(1,)]


def test_no_rollouts_are_a_lesson_too() -> None:
    lesson = Lesson([], [], {}, {}, TrainerConfig())
    assert lesson.members == lesson.active == ()
    assert list(lesson.micro_batches(100, shared_row_tokens=0)) == []
    assert lesson.report({}) == {}


def test_misfits_are_refused() -> None:
    for temperature in (0.0, float("inf"), float("nan")):
        with pytest.raises(ValueError, match="finite temperature above 0"):
            Lesson(
                [replace(rollout("a", (-1.0,)), temperature=temperature)], [1.0], {"a": 0}, {"a": 0.1}, TrainerConfig()
            )
    with pytest.raises(ValueError, match="log-probability a token"):
        Lesson([replace(rollout("a", (-1.0,)), token_ids=())], [1.0], {"a": 0}, {"a": 0.1}, TrainerConfig())
