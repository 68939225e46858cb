"""The whole tree of a small game as arrays: sampling, exact payoffs, and mixtures as one policy each.

Owns the tree and what is computed on it. Owns no networks.

Symbols: I information states of a player, A actions, Z ends of the game, P policies, G games. A policy of a player is
float64 [I, A]: the chance of each action, 0 where it is illegal.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyspiel
from numpy.typing import NDArray

from league.classic.games import ClassicGame

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_CHANCE, _END = 2, 3


@dataclass(slots=True)
class _Growth:
    """A tree that is being walked."""

    kinds: list[int] = field(default_factory=list)
    infos: list[int] = field(default_factory=list)
    children: list[list[int]] = field(default_factory=list)
    odds: list[list[float]] = field(default_factory=list)
    gains: list[float] = field(default_factory=list)
    names: tuple[dict[str, int], dict[str, int]] = field(default_factory=lambda: ({}, {}))
    seen: tuple[list[list[float]], list[list[float]]] = field(default_factory=lambda: ([], []))
    legal: tuple[list[list[int]], list[list[int]]] = field(default_factory=lambda: ([], []))
    before: tuple[list[tuple[int, ...]], list[tuple[int, ...]]] = field(default_factory=lambda: ([], []))
    ends: list[tuple[int, float, tuple[tuple[int, ...], tuple[int, ...]]]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """Choices of many games, one a row."""

    game: Ints
    player: Ints
    info: Ints
    action: Ints


class Tree:
    """The tree of one game."""

    def __init__(self, game: ClassicGame) -> None:
        """Walk the whole game; seconds for ten thousand nodes."""
        self.game = game
        grown = _Growth()
        self._walk(game.spiel.new_initial_state(), 1.0, ((), ()), grown)
        width = max(map(len, grown.children))
        self._kinds, self._infos = np.array(grown.kinds), np.array(grown.infos)
        self._children = np.array([row + [0] * (width - len(row)) for row in grown.children])
        self._odds = np.array([row + [0.0] * (width - len(row)) for row in grown.odds])
        self._gains = np.array(grown.gains)
        self.names = tuple(list(names) for names in grown.names)
        """OpenSpiel's names of the information states of each player."""
        self.seen = tuple(np.array(rows, dtype=np.float32) for rows in grown.seen)
        """What a network sees in each, float32 [I, width] by player."""
        self.legal = tuple(self._mask(rows) for rows in grown.legal)
        """Which actions are legal there, bool [I, A] by player."""
        self._before = tuple(self._padded(grown.before[player], player) for player in (0, 1))
        self._chance = np.array([odds for _, odds, _ in grown.ends])
        self._end_gains = np.array([grown.gains[node] for node, _, _ in grown.ends])
        self._played = tuple(self._padded([end[2][player] for end in grown.ends], player) for player in (0, 1))

    def uniform(self, player: int) -> Floats:
        """Return the policy that plays every legal action alike."""
        legal = self.legal[player].astype(np.float64)
        policy: Floats = legal / legal.sum(axis=1, keepdims=True)
        return policy

    def payoffs(self, first: Floats, second: Floats) -> Floats:
        """Return what the second player gains on average, [Q, P], of policies [P, I, A] first and [Q, I, A] second."""
        gains: Floats = -(self._reach(second, 1) * (self._chance * self._end_gains)) @ self._reach(first, 0).T
        return gains

    def mixture(self, policies: Floats, weights: Floats, player: int) -> Floats:
        """Return the policy [I, A] that plays as who draws one of `policies` [P, I, A] by `weights` before the game.

        With perfect recall it is the mean of the policies, each weighted by how likely it leads to the information
        state (Kuhn's theorem); where none does, the plain mean.
        """
        flat = _with_one(policies)
        leads = weights[:, None] * flat[:, self._before[player]].prod(axis=2)
        total = leads.sum(axis=0)
        shares = np.where(total > 0, leads / np.where(total > 0, total, 1.0), weights[:, None] / weights.sum())
        mixed: Floats = np.einsum("pi,pia->ia", shares, policies)
        return mixed

    def nash_conv(self, first: Floats, second: Floats) -> float:
        """Return OpenSpiel's NashConv of two policies [I, A]: what both players could gain together by answering best.

        0 in equilibrium and nowhere else.
        """
        table = {}
        for player, policy in enumerate((first, second)):
            for name, legal, row in zip(self.names[player], self.legal[player], policy, strict=True):
                chances = row / row.sum()
                table[name] = [(int(action), float(chances[action])) for action in np.flatnonzero(legal)]
        return float(pyspiel.nash_conv(self.game.spiel, table))

    def sample(
        self, policies: tuple[Floats, Floats], who: tuple[Ints, Ints], generator: np.random.Generator
    ) -> tuple[Floats, Steps]:
        """Play G games.

        Args:
            policies: [P, I, A] of each player.
            who: Which of them plays each game, int64 [G] of each player.
            generator: Decides everything.

        Returns:
            What the second player gained, [G], and all choices, in the order in which they were made.
        """
        count = len(who[0])
        nodes, games = np.zeros(count, dtype=np.int64), np.arange(count)
        parts: list[tuple[Ints, Ints, Ints, Ints]] = []
        while len(running := games[self._kinds[nodes] != _END]):
            at = nodes[running]
            kinds, infos = self._kinds[at], self._infos[at]
            odds = self._odds[at].copy()
            for player in (0, 1):
                mine = kinds == player
                odds[mine, : self.game.actions] = policies[player][who[player][running[mine]], infos[mine]]
            chosen = draw(odds, generator)
            nodes[running] = self._children[at, chosen]
            acts = kinds < _CHANCE
            parts.append((running[acts], kinds[acts], infos[acts], chosen[acts]))
        game, player_of, info, action = (np.concatenate(part) for part in zip(*parts, strict=True))
        return -self._gains[nodes], Steps(game=game, player=player_of, info=info, action=action)

    def _walk(self, state: Any, odds: float, played: tuple[tuple[int, ...], tuple[int, ...]], grown: _Growth) -> int:
        """Add the node of `state` and all below; return its number."""
        node = len(grown.kinds)
        kind = _END if state.is_terminal() else _CHANCE if state.is_chance_node() else state.current_player()
        grown.kinds.append(kind)
        grown.infos.append(0)
        grown.children.append([])
        grown.odds.append([])
        grown.gains.append(state.returns()[0] if kind == _END else 0.0)
        if kind == _END:
            grown.ends.append((node, odds, played))
        elif kind == _CHANCE:
            for outcome, chance in state.chance_outcomes():
                grown.odds[node].append(chance)
                below = self._walk(state.child(outcome), odds * chance, played, grown)
                grown.children[node].append(below)
        else:
            info = self._info(state, kind, played[kind], grown)
            grown.infos[node] = info
            grown.children[node] = [0] * self.game.actions
            for action in state.legal_actions():
                step = (*played[kind], info * self.game.actions + action)
                then = (step, played[1]) if kind == 0 else (played[0], step)
                below = self._walk(state.child(action), odds, then, grown)
                grown.children[node][action] = below
        return node

    def _info(self, state: Any, player: int, played: tuple[int, ...], grown: _Growth) -> int:
        """Return the number of the information state, a new one if it was not met before."""
        names = grown.names[player]
        name = state.information_state_string(player)
        if name not in names:
            names[name] = len(names)
            grown.seen[player].append(self.game.seen(state, player))
            grown.legal[player].append(state.legal_actions())
            grown.before[player].append(played)
        return names[name]

    def _mask(self, rows: list[list[int]]) -> NDArray[np.bool_]:
        mask = np.zeros((len(rows), self.game.actions), dtype=np.bool_)
        for row, legal in enumerate(rows):
            mask[row, legal] = True
        return mask

    def _padded(self, rows: list[tuple[int, ...]], player: int) -> Ints:
        """Return own choices as places in a flat policy, filled up with the place behind it, which holds 1."""
        one = len(self.legal[player]) * self.game.actions
        width = max(map(len, rows))
        return np.array([[*row, *[one] * (width - len(row))] for row in rows], dtype=np.int64)

    def _reach(self, policies: Floats, player: int) -> Floats:
        """Return each policy's own share of the chance of each end, [P, Z]."""
        reached: Floats = _with_one(policies)[:, self._played[player]].prod(axis=2)
        return reached


def draw(odds: Floats, generator: np.random.Generator) -> Ints:
    """Return a column for each row of `odds` [G, A], >= 0 with a sum above 0."""
    heights = np.cumsum(odds, axis=1)
    chosen: Ints = (heights <= generator.random(len(odds))[:, None] * heights[:, -1:]).sum(axis=1)
    return chosen


def _with_one(policies: Floats) -> Floats:
    flat = policies.reshape(len(policies), -1)
    return np.concatenate([flat, np.ones((len(flat), 1))], axis=1)
