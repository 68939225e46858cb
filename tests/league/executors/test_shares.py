"""Who goes through the model with whom: shares are whole, keep their order, and follow the slots alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from league.executors.shares import one_report, request_shares, rollout_shares, shared_lessons
from populora_agents.types import AdapterVersion, DivergedError, MemberUpdate, Request, Rollout, UpdateReport

SLOTS = {f"member_{slot}": slot for slot in range(5)}


def request(slot: int | None) -> Request:
    adapter = None if slot is None else AdapterVersion(member_id=f"member_{slot}", version=0)
    return Request(adapter=adapter, messages=(), max_new_tokens=1)


def rollout(slot: int) -> Rollout:
    return Rollout(
        member_id=f"member_{slot}", batch="b", group_id="g", prompt_ids=(1,), token_ids=(), logprobs=(), reward=0.0
    )


def report(*members: str) -> UpdateReport:
    update = MemberUpdate(
        rollouts=1, tokens=1, loss=0, grad_norm=0, clip_fraction=0, entropy=None, entropy_estimate=0, logprob_gap=None
    )
    return UpdateReport(members=dict.fromkeys(members, update), seconds=1.0)


def test_neighbours_go_to_different_shards_and_the_bare_base_is_cut_into_runs() -> None:
    versions = {name: (slot, 0) for name, slot in SLOTS.items()}
    asked = [request(slot) for slot in (4, None, 0, 1, None, 1, 3, None)]
    assert request_shares(asked, versions, 2) == [[0, 1, 2, 4], [3, 5, 6, 7]]
    assert request_shares(asked, versions, 1) == [list(range(8))]
    assert rollout_shares([rollout(slot) for slot in (4, 0, 1, 1, 3)], SLOTS, 3) == [[1, 4], [0, 2, 3], []]


@given(st.lists(st.one_of(st.none(), st.integers(0, 4))), st.integers(1, 6))
def test_shares_are_whole_ordered_and_keep_members_together(asked: list[int | None], shards: int) -> None:
    shares = request_shares([request(slot) for slot in asked], {name: (s, 0) for name, s in SLOTS.items()}, shards)
    assert len(shares) == shards
    assert sorted(place for share in shares for place in share) == list(range(len(asked)))
    assert all(share == sorted(share) for share in shares)
    for slot in range(5):
        assert sum(any(asked[place] == slot for place in share) for share in shares) <= 1


def test_lessons_carry_the_advantages_of_their_rollouts() -> None:
    rollouts = [rollout(slot) for slot in (0, 1, 2)]
    (first, ones), (second, others) = shared_lessons(rollouts, [0.5, 1.5, 2.5], SLOTS, 2)
    assert (first, ones.tolist()) == ([rollouts[0], rollouts[2]], [0.5, 2.5])
    assert (second, others.tolist()) == ([rollouts[1]], [1.5])


def test_members_that_nobody_holds_and_advantages_that_lack_are_refused() -> None:
    with pytest.raises(ValueError, match="does not hold member 'member_0'"):
        request_shares([request(0)], {}, 1)
    with pytest.raises(ValueError, match="lacks 'member_0'"):
        rollout_shares([rollout(0)], {}, 1)
    with pytest.raises(ValueError, match=r"must be 1 numbers, got shape \(2,\)"):
        shared_lessons([rollout(0)], np.zeros(2), SLOTS, 1)


def test_reports_become_one_and_divergence_names_all() -> None:
    whole = one_report([report("b"), report("a", "c")], 7.0)
    assert (list(whole.members), whole.seconds) == (["a", "b", "c"], 7.0)
    one = DivergedError(["a"], "gradients are")
    with pytest.raises(DivergedError, match="a diverged: gradients are not finite"):
        one_report([report("b"), one], 1.0)
    with pytest.raises(DivergedError, match="a and b diverged") as stop:
        one_report([DivergedError(["b"], "gradients are"), one], 1.0)
    assert stop.value.members == ("a", "b")
