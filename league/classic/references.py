"""What members are held against: random play, minimax, and counterfactual regret minimisation.

Owns the references and the games against them. Owns no learning.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyspiel

from league import seeds
from league.classic.arena import ClassicArena
from league.classic.measures import SEATS, mixtures
from league.classic.tables import TreeTable, look
from league.classic.tree import Floats, Ints, Tree
from league.types import Member, Rating, Side

CFR_UPDATES = 200
"""Of the reference; Kuhn's NashConv is below 0.01 by then, Leduc's below 0.15."""
BOARD_GAMES = 1000
"""Games of a member against each reference on a board."""

Reply = Callable[[Sequence[Any], np.random.Generator], list[int]]
"""Chooses an action in each of some states."""


def best_of(members: Sequence[Member], ratings: dict[str, Rating], side: Side) -> Member:
    """Return the member of a side with the highest lower bound of its rating, mu - sigma."""
    return max(
        (member for member in members if member.side is side), key=lambda one: ratings[one.member_id].lower_bound(1.0)
    )


def references(
    arena: ClassicArena, members: Sequence[Member], ratings: dict[str, Rating], *, seed: int
) -> dict[str, Any]:
    """Return what random play, and the game's own reference, say of a finished league."""
    if isinstance(arena.table, TreeTable):
        return tree_references(arena, arena.table)
    replies: dict[str, Reply] = {"random": random_reply}
    if arena.game.name == "tictactoe":
        replies["minimax"] = Minimax()
    best = {side: best_of(members, ratings, side) for side in SEATS}
    return {
        name: {
            f"best_{side.value}": {"member": best[side].member_id}
            | against(arena, best[side], reply, games=BOARD_GAMES, generator=seeds.generator(seed, 0, name, side.value))
            for side in SEATS
        }
        for name, reply in replies.items()
    }


def tree_references(arena: ClassicArena, table: TreeTable) -> dict[str, Any]:
    """Return NashConv of random play and of CFR, and what the league's mixture gains against each in each seat."""
    tree = table.tree
    teacher, student = mixtures(arena, table)["mixture"]
    others = {"random": (tree.uniform(0), tree.uniform(1)), "cfr": cfr(tree, CFR_UPDATES)}
    told: dict[str, Any] = {}
    for name, (first, second) in others.items():
        told[name] = {
            "nash_conv": tree.nash_conv(first, second),
            "teachers_gain": -float(tree.payoffs(teacher[None], second[None])[0, 0]),
            "students_gain": float(tree.payoffs(first[None], student[None])[0, 0]),
        }
    first, second = others["cfr"]
    told["cfr"]["first_seat_value"] = -float(tree.payoffs(first[None], second[None])[0, 0])
    return told


def cfr(tree: Tree, updates: int) -> tuple[Floats, Floats]:
    """Return the average policies [I, A] of both players after so many updates of OpenSpiel's CFR."""
    solver = pyspiel.CFRSolver(tree.game.spiel)
    for _ in range(updates):
        solver.evaluate_and_update_policy()
    average = solver.average_policy()
    policies = []
    for player in (0, 1):
        policy = np.zeros(tree.legal[player].shape)
        for row, name in enumerate(tree.names[player]):
            for action, chance in average.action_probabilities(name).items():
                policy[row, action] = chance
        policies.append(policy)
    return policies[0], policies[1]


def against(
    arena: ClassicArena, member: Member, reply: Reply, *, games: int, generator: np.random.Generator
) -> dict[str, float]:
    """Return the shares of games that a member, always taking its likeliest action, wins, draws and loses."""
    seat = 0 if member.side is Side.TEACHER else 1
    states = [arena.game.spiel.new_initial_state() for _ in range(games)]
    while running := [state for state in states if not state.is_terminal()]:
        player = running[0].current_player()  # boards of one age: all are at the same player's turn
        chosen = greedy(arena, member, running, player) if player == seat else reply(running, generator)
        for state, action in zip(running, chosen, strict=True):
            state.apply_action(action)
    gains = np.array([state.player_return(seat) for state in states])
    return {"won": float(np.mean(gains > 0)), "drawn": float(np.mean(gains == 0)), "lost": float(np.mean(gains < 0))}


def greedy(arena: ClassicArena, member: Member, states: Sequence[Any], player: int) -> list[int]:
    """Return the likeliest action of a member in each state."""
    seen, legal = look(arena.game, list(states), np.full(len(states), player))
    slots: Ints = np.full(len(states), arena.slot_of(member))
    return [int(action) for action in arena.cast.chances(slots, seen, legal).argmax(axis=1)]


def random_reply(states: Sequence[Any], generator: np.random.Generator) -> list[int]:
    """Choose evenly among legal actions."""
    return [int(generator.choice(state.legal_actions())) for state in states]


class Minimax:
    """Chooses evenly among the best actions; remembers every position, so for small boards only."""

    def __init__(self) -> None:
        """Nothing is searched yet."""
        self._values: dict[str, float] = {}

    def __call__(self, states: Sequence[Any], generator: np.random.Generator) -> list[int]:
        """Choose."""
        return [int(generator.choice(self.best(state))) for state in states]

    def best(self, state: Any) -> list[int]:
        """Return the actions that lead to the best end for whose turn it is."""
        sign = 1 if state.current_player() == 0 else -1
        worth = {action: sign * self.value(state.child(action)) for action in state.legal_actions()}
        return [action for action, value in worth.items() if value == max(worth.values())]

    def value(self, state: Any) -> float:
        """Return what the first player gains when both play best from here."""
        name = str(state)
        if name not in self._values:
            if state.is_terminal():
                value = state.player_return(0)
            else:
                values = [self.value(state.child(action)) for action in state.legal_actions()]
                value = max(values) if state.current_player() == 0 else min(values)
            self._values[name] = float(value)
        return self._values[name]
