"""References: minimax never loses, CFR comes close to the equilibrium."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("pyspiel", reason="needs OpenSpiel")

from league.classic.games import load_game
from league.classic.references import Minimax, cfr, random_reply
from league.classic.tree import Tree


def test_minimax_draws_with_itself_and_never_loses_to_random_play() -> None:
    game = load_game("tictactoe")
    minimax, generator = Minimax(), np.random.default_rng(0)
    assert minimax.value(game.spiel.new_initial_state()) == 0
    for second in (minimax, random_reply):
        for _ in range(20):
            state = game.spiel.new_initial_state()
            while not state.is_terminal():
                reply = minimax if state.current_player() == 0 else second
                state.apply_action(reply([state], generator)[0])
            assert state.player_return(0) >= 0
            assert second is random_reply or state.player_return(0) == 0


def test_cfr_finds_kuhns_value() -> None:
    tree = Tree(load_game("kuhn"))
    first, second = cfr(tree, 200)
    assert tree.nash_conv(first, second) < 0.01
    assert -tree.payoffs(first[None], second[None])[0, 0] == pytest.approx(-1 / 18, abs=2e-3)
