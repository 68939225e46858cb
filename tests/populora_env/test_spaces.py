"""Tests of `populora_env.spaces`."""

import copy
import pickle
import time

import pytest
from gymnasium import spaces

from populora_env.config import GameConfig
from populora_env.game import Round
from populora_env.parsing import parse_answer, parse_proposal
from populora_env.spaces import UnicodeText
from populora_env.types import Answer, Malformed, Problem, Proposal, Role, Task

REFERENCE = Problem(
    problem_id="r", task=Task.DEDUCTION, program="def f(a):\n    return a", inputs=("(1,)",), outputs=("1",)
)


def share(texts, kind, style):
    """Of the texts, the share that some task reads as a proposal or an answer."""
    config = GameConfig(style=style)

    def reads(text, task):
        if kind is Proposal:
            return not isinstance(parse_proposal(text, task=task, references=[REFERENCE], config=config), Malformed)
        return not isinstance(parse_answer(text, task=task, config=config), Malformed)

    return sum(any(reads(text, task) for task in Task) for text in texts) / len(texts)


@pytest.mark.parametrize("text", ["", "\0", "\ud800", "x" * 10_000_000, "\U0010ffff"], ids=range(5))
def test_contains_every_str(text):
    assert UnicodeText().contains(text)
    assert text in UnicodeText()


@pytest.mark.parametrize("thing", [None, 3, b"text", ["text"], 1.0])
def test_contains_nothing_else(thing):
    assert not UnicodeText().contains(thing)


@pytest.mark.parametrize("style", ["compact", "chat"])
def test_samples_mix_junk_with_what_the_role_writes(style):
    config = GameConfig(style=style)
    for role, kind in ((Role.PROPOSER, Proposal), (Role.SOLVER, Answer)):
        space = UnicodeText(config, role=role, seed=0)
        texts = [space.sample() for _ in range(400)]
        assert 0.7 < share(texts, kind, style) < 0.95
        assert all(space.contains(text) and text.encode() is not None for text in texts)


def test_samples_come_from_the_seed_alone():
    first, second = UnicodeText(seed=3), UnicodeText(seed=3)
    texts = [first.sample() for _ in range(50)]
    assert texts == [second.sample() for _ in range(50)]
    first.seed(3)
    assert texts == [first.sample() for _ in range(50)]
    assert texts != [second.sample() for _ in range(50)]


def test_copies_go_on_where_the_space_stands():
    space = UnicodeText(seed=3)
    space.sample()
    copies = [copy.deepcopy(space), pickle.loads(pickle.dumps(space))]
    expected = space.sample()
    assert [each.sample() for each in copies] == [expected, expected]


def test_equality_is_by_rules_and_role():
    assert UnicodeText() == UnicodeText(seed=1)
    assert UnicodeText() != UnicodeText(role=Role.SOLVER)
    assert UnicodeText() != UnicodeText(GameConfig(style="chat"))
    assert UnicodeText() != spaces.Text(5)
    assert isinstance(UnicodeText(), spaces.Text)
    assert not spaces.Dict({"prompt": UnicodeText()}).is_np_flattenable
    assert repr(UnicodeText(role=Role.SOLVER)) == "UnicodeText(solver)"


def test_masks_are_refused():
    with pytest.raises(ValueError, match="mask"):
        UnicodeText().sample((3, None))


def test_is_cheap():
    start = time.process_time()
    space = UnicodeText(seed=0)
    for _ in range(100):
        space.sample()
    assert time.process_time() - start < 1.0  # about 0.01 s; a full-Unicode `Text` takes seconds


@pytest.mark.parametrize("task", list(Task))
def test_well_formed_samples_fit_what_is_asked(task):
    config = GameConfig()
    space = UnicodeText(config, role=Role.PROPOSER, seed=0)

    def fitting():
        texts = [space.sample() for _ in range(400)]
        read = [parse_proposal(text, task=task, references=[REFERENCE], config=config) for text in texts]
        return sum(isinstance(proposal, Proposal) for proposal in read) / len(texts)

    blind = fitting()
    space.asked = Round(task=task, references=[REFERENCE], config=config).proposer_observation()
    assert fitting() > max(0.7, blind + 0.1)
