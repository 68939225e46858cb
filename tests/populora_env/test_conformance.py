"""PettingZoo's own checks on the text faces, with the real verifier, whatever versions are installed.

Each check is believed only if random play in it reached the solvers: an environment in which every proposal is invalid
passes them all.
"""

from types import SimpleNamespace

import pytest
from pettingzoo.test import api_test, max_cycles_test, parallel_api_test, parallel_seed_test, render_test, seed_test
from pettingzoo.test.state_test import state_test

from populora_env import spaces, text_v0
from populora_env.config import GameConfig
from populora_env.text_parallel import TextParallelEnv
from populora_env.text_v0 import TextEnv
from populora_env.types import Task
from populora_env.verifier import Verifier

FEWEST_REACHED = 0.2
ROUNDS = 30

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning:pettingzoo.test.api_test"),
    pytest.mark.filterwarnings("ignore::UserWarning:pettingzoo.test.state_test"),
]


@pytest.fixture(scope="module")
def verifier():
    with Verifier() as shared:
        yield shared


class Maker:
    """Makes environments with seeded samples, and counts the rounds that reach the solvers."""

    def __init__(self, kind, verifier, **rules):
        """Make environments of this class."""
        self.kind, self.verifier, self.config, self.results = kind, verifier, GameConfig(**rules), []

    def __call__(self, render_mode=None):
        """Make one."""
        env = self.kind(
            config=self.config, verifier=self.verifier, render_mode=render_mode, on_settled=self.results.append
        )
        for place, agent in enumerate(env.possible_agents):
            env.action_space(agent).seed(place)
        return env

    def assert_reached(self, *, rounds=1):
        """Check that enough rounds had a valid problem."""
        assert len(self.results) >= rounds
        share = sum(result.problem is not None for result in self.results) / len(self.results)
        assert share >= FEWEST_REACHED


@pytest.mark.parametrize("style", ["compact", "chat"])
def test_parallel_api(style, verifier):
    make = Maker(TextParallelEnv, verifier, rounds=ROUNDS, style=style)
    parallel_api_test(make(), num_cycles=200)
    make.assert_reached(rounds=2 * ROUNDS)
    assert {result.task for result in make.results if result.problem is not None} == set(Task)


def test_parallel_seed(verifier):
    make = Maker(TextParallelEnv, verifier, rounds=1)
    for _ in range(5):  # pettingzoo looks at one step; `test_determinism` looks at many
        parallel_seed_test(make)


def test_api_and_seed_through_the_makers():
    api_test(text_v0.env(rounds=4), num_cycles=20)
    seed_test(lambda: text_v0.env(rounds=4), num_cycles=20)
    parallel_api_test(text_v0.parallel_env(rounds=4), num_cycles=20)


@pytest.mark.parametrize("kind", [TextEnv, TextParallelEnv])
def test_render(kind, verifier, capsys):
    make = Maker(kind, verifier, rounds=ROUNDS)
    if kind is TextEnv:
        render_test(make)
    else:  # the check plays by the AEC interface
        for mode in kind.metadata["render_modes"]:
            env = make(render_mode=mode)
            env.reset(seed=0)
            for _ in range(20):
                env.step({agent: env.action_space(agent).sample() for agent in env.agents})
                assert isinstance(env.render(), str if mode == "ansi" else type(None))
    make.assert_reached(rounds=5)
    assert "solved it" in capsys.readouterr().out


def test_state(verifier):
    make, parallel = Maker(TextEnv, verifier, rounds=ROUNDS), Maker(TextParallelEnv, verifier, rounds=2)
    state_test(make(), parallel())
    make.assert_reached(rounds=5)


def test_max_cycles_are_rounds_where_every_proposal_is_valid(verifier, monkeypatch):
    """The check asks that each agent acts in each cycle; one round is one AEC cycle, and two parallel steps."""
    monkeypatch.setattr(spaces, "_JUNK_SHARE", 0.0)
    monkeypatch.setattr(spaces, "_OTHER_ROLE_SHARE", 0.0)
    rules = {"tasks": ("deduction", "abduction"), "verifier": verifier}
    face = SimpleNamespace(
        env=lambda max_cycles: text_v0.env(max_cycles=max_cycles, **rules),
        parallel_env=lambda max_cycles: text_v0.parallel_env(max_cycles=max_cycles // 2, **rules),
    )
    max_cycles_test(face)
