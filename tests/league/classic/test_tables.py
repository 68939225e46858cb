"""Tables: who begins at random, and what is kept of it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

pytest.importorskip("pyspiel", reason="needs OpenSpiel")

from league.classic.cast import Cast
from league.classic.games import load_game
from league.classic.network import TARGETS, PolicyNetwork
from league.classic.tables import BoardTable, Deal
from populora_agents.config import LoraConfig

GAMES = 3000


def test_random_moves_are_spread_evenly_and_are_nobodys_choices() -> None:
    game = load_game("tictactoe")
    network = PolicyNetwork(game.width, game.actions, 8, torch.Generator().manual_seed(0))
    table = BoardTable(game, Cast(network, LoraConfig(lora_rank=2, targets=TARGETS), 2), payoff_games=1)
    first = np.zeros(GAMES, dtype=np.int64)
    astray = np.zeros((2, GAMES), dtype=np.bool_)
    deal = Deal(first=first, second=first + 1, learns=~astray, strays=astray)
    _, straight = table.deal(deal, np.random.default_rng(1))
    astray[0] = True
    _, choices = table.deal(deal, np.random.default_rng(1))
    assert (straight.seen[straight.slots == 0].reshape(-1, 3, 9)[:, 0].sum(axis=1) == 9).sum() == GAMES
    assert (choices.seen[choices.slots == 0].reshape(-1, 3, 9)[:, 0].sum(axis=1) < 9).all()
    empty = choices.seen[choices.slots == 1].reshape(-1, 3, 9)[:, 0]
    replies = empty[empty.sum(axis=1) == 8]
    assert len(replies) == GAMES, "who did not stray keeps all choices"
    assert (1 - replies).mean(axis=0) == pytest.approx(np.full(9, 1 / 9), abs=0.03)
    kept, all_of_them = (choices.slots == 0).sum() / GAMES, (straight.slots == 0).sum() / GAMES
    assert kept < all_of_them / 2
