"""Which versions an engine holds, and that nobody is answered by another one; over an engine made of torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_bases import make_model, make_tokenizer, random_adapter
from torch_engine import Flaw, TorchEngine

from populora_agents.backends.serving import ServingBackend
from populora_agents.backends.torch import TorchBackend
from populora_agents.bases import Base
from populora_agents.config import NANO, LoraConfig
from populora_agents.lora import LoraFactors
from populora_agents.stack import AdapterStack
from populora_agents.types import AdapterVersion, EngineError, Request
from populora_env.types import Message

CONFIG = LoraConfig(lora_rank=4, alpha=8.0)
MEMBERS = 4


class Rig:
    """A backend over the torch engine, beside the torch backend that says what is right."""

    def __init__(self, *, max_slots: int = 2) -> None:
        """Put random adapters of four members into both."""
        mine, theirs = (
            Base(model=make_model(), tokenizer=make_tokenizer(), preset=NANO, name="tiny") for _ in range(2)
        )
        self.stack = AdapterStack(mine.model, CONFIG, MEMBERS)
        self.slots: dict[str, tuple[int, int]] = {}
        for slot in range(MEMBERS):
            self.stack.load(slot, random_adapter(mine.model, CONFIG, slot))
            self.slots[f"m{slot}"] = (slot, 0)
        self.engine = TorchEngine(theirs, CONFIG, max_slots=max_slots)
        self.backend = ServingBackend(mine, self.stack, self.slots, self.engine, max_slots=max_slots)
        self.right = TorchBackend(mine, self.stack, self.slots)

    def requests(self, members: Sequence[int | None]) -> list[Request]:
        """Return one request a member, each with a prompt of its own."""
        return [
            Request(
                adapter=None if member is None else self.version(member),
                messages=(Message(role="user", content=f"what is {place} ?"),),
                max_new_tokens=6,
                seed=place,
            )
            for place, member in enumerate(members)
        ]

    def version(self, member: int) -> AdapterVersion:
        """Return the present version of a member."""
        return AdapterVersion(member_id=f"m{member}", version=self.slots[f"m{member}"][1])

    def learn(self, member: int, seed: int) -> None:
        """Give a member other weights, and its next version."""
        slot, version = self.slots[f"m{member}"]
        self.stack.load(slot, random_adapter(self.stack.bare_model(), CONFIG, seed))
        self.slots[f"m{member}"] = (slot, version + 1)

    def check(self, members: Sequence[int | None]) -> None:
        """Ask both, and compare."""
        requests = self.requests(members)
        for mine, right in zip(self.backend.generate(requests), self.right.generate(requests), strict=True):
            assert (mine.request, mine.prompt_ids, mine.token_ids) == (right.request, right.prompt_ids, right.token_ids)
            assert (mine.text, mine.finish_reason) == (right.text, right.finish_reason)
            assert mine.logprobs == pytest.approx(right.logprobs, abs=1e-4)


@pytest.fixture
def make_rig() -> Callable[..., Rig]:
    return Rig


def test_members_answer_as_themselves_in_the_callers_order(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(max_slots=2)
    rig.check([3, None, 0, 1, 3, 2, None])
    rig.check([])


def test_more_members_than_slots_load_each_version_once_a_call(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(max_slots=2)
    rig.check([0, 1, 2, 3] * 3)
    assert len(rig.engine.loads) == 4
    assert rig.backend.loaded == (rig.version(2), rig.version(3))
    rig.check([0, 1, 2, 3])  # the loaded ones go first
    assert len(rig.engine.loads) == 6


def test_versions_stay_until_their_member_has_another(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(max_slots=4)
    rig.check([0, 1])
    rig.check([0, 1])
    assert len(rig.engine.loads) == 2
    rig.learn(0, seed=50)
    rig.check([1])
    assert rig.backend.loaded == (rig.version(1),)
    assert len(rig.engine.held) == 1


def test_files_lie_in_memory_only_while_an_engine_needs_them(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(max_slots=2)
    rig.check([0, 1, 2])
    folders = [published.folder for published in rig.backend._loaded.values()]
    parent = folders[0].parent
    assert sorted(path for path in parent.iterdir() if path.is_dir()) == sorted(folders)  # beside the lock
    rig.backend.close()
    assert not parent.exists()
    assert rig.engine.closed
    assert not rig.engine.held


@pytest.mark.parametrize("flaw", ["answers as the base", "answers as the first", "greedy"])
def test_wrong_answers_are_errors(flaw: Flaw, make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(max_slots=2)
    rig.check([0])
    rig.engine.flaw = flaw
    match = "as the bare base" if "base" in flaw else "as another adapter"
    with pytest.raises(EngineError, match=f"does not answer as m1@0, but {match}"):
        rig.backend.generate(rig.requests([1]))
    assert rig.version(1) not in rig.backend.loaded


def test_an_adapter_that_changes_nothing_rightly_answers_as_the_base(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig()
    fresh = random_adapter(rig.stack.bare_model(), CONFIG, 9)
    rig.stack.load(0, {path: LoraFactors(A=pair.A, B=0 * pair.B) for path, pair in fresh.items()})
    rig.engine.flaw = "answers as the base"
    rig.check([0])


def test_another_base_is_refused_at_once() -> None:
    mine, other = (
        Base(model=make_model(seed=seed), tokenizer=make_tokenizer(), preset=NANO, name="tiny") for seed in range(2)
    )
    with pytest.raises(EngineError, match="is not the trainer's"):
        ServingBackend(mine, None, {}, TorchEngine(other, CONFIG, max_slots=1), max_slots=1)


def test_an_engine_that_is_gone_says_so_and_closing_still_works(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig()
    rig.check([0])
    rig.engine.flaw = "gone"
    with pytest.raises(EngineError, match="gone"):
        rig.backend.generate(rig.requests([1]))
    rig.backend.close()


def test_who_is_not_held_is_refused_before_anything_is_sampled(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig()
    request = rig.requests([0])[0]
    rig.learn(0, seed=50)
    with pytest.raises(ValueError, match="holds 'm0' at version 1, not at 0"):
        rig.backend.generate([request])
    assert rig.engine.loads == []


SCHEDULES = st.lists(
    st.tuples(st.sampled_from(["ask", "learn"]), st.lists(st.integers(0, MEMBERS - 1), min_size=1, max_size=4)),
    min_size=1,
    max_size=6,
)


@settings(max_examples=20)
@given(schedule=SCHEDULES, max_slots=st.integers(1, 3))
def test_after_any_schedule_every_answer_is_of_the_version_asked_for(
    schedule: list[tuple[str, list[int]]], max_slots: int
) -> None:
    rig = Rig(max_slots=max_slots)
    for number, (what, members) in enumerate(schedule):
        if what == "ask":
            rig.check(members)
            assert len(rig.engine.held) <= max_slots
        else:
            for member in members:
                rig.learn(member, seed=100 + 10 * number + member)
    rig.backend.close()
