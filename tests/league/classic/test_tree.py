"""The tree of a small game: OpenSpiel's published values, and mixtures that play as their parts."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("pyspiel", reason="needs OpenSpiel")

from league.classic.games import load_game
from league.classic.tree import Tree, draw


@pytest.mark.parametrize(("name", "value"), [("rps", 0.0), ("kuhn", 0.9167), ("leduc", 4.7472)])
def test_nash_conv_of_random_play_is_the_published_one(name: str, value: float) -> None:
    tree = Tree(load_game(name))  # type: ignore[arg-type]
    assert tree.nash_conv(tree.uniform(0), tree.uniform(1)) == pytest.approx(value, abs=5e-5)


def test_payoffs_of_pure_moves_are_those_of_the_game() -> None:
    tree = Tree(load_game("rps"))
    pure = np.eye(3)[:, None, :]
    assert tree.payoffs(pure, pure).tolist() == [[0, -1, 1], [1, 0, -1], [-1, 1, 0]]


def random_policies(tree: Tree, player: int, count: int, generator: np.random.Generator) -> np.ndarray:
    legal = tree.legal[player]
    policies = generator.exponential(size=(count, *legal.shape)) * legal
    return policies / policies.sum(axis=2, keepdims=True)


def test_a_mixture_gains_what_its_parts_gain_on_average() -> None:
    tree = Tree(load_game("kuhn"))
    generator = np.random.default_rng(0)
    first, second = (random_policies(tree, player, 3, generator) for player in (0, 1))
    weights = np.array([0.2, 0.5, 0.3])
    mixed = tree.mixture(first, weights, 0)
    assert tree.payoffs(mixed[None], second)[:, 0] == pytest.approx(tree.payoffs(first, second) @ weights)
    mixed = tree.mixture(second, weights, 1)
    assert tree.payoffs(first, mixed[None])[0] == pytest.approx(weights @ tree.payoffs(first, second))


def test_sampled_games_agree_with_exact_payoffs() -> None:
    tree = Tree(load_game("kuhn"))
    generator = np.random.default_rng(1)
    first, second = (random_policies(tree, player, 1, generator) for player in (0, 1))
    who = np.zeros(20_000, dtype=np.int64)
    gains, steps = tree.sample((first, second), (who, who), generator)
    assert gains.mean() == pytest.approx(tree.payoffs(first, second)[0, 0], abs=0.04)
    legal = [
        tree.legal[player][info, action]
        for player, info, action in zip(steps.player, steps.info, steps.action, strict=True)
    ]
    assert all(legal)


def test_draw_follows_the_odds_and_never_takes_what_has_none() -> None:
    odds = np.tile([0.0, 3.0, 0.0, 1.0, 0.0], (10_000, 1))
    counts = np.bincount(draw(odds, np.random.default_rng(2)), minlength=5)
    assert counts[[0, 2, 4]].tolist() == [0, 0, 0]
    assert counts[1] / 10_000 == pytest.approx(0.75, abs=0.02)
