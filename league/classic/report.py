"""What a comparison of schemes comes to: the ratios that are promised, and tables for people.

Owns layout. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Leagues = Mapping[str, Sequence[Mapping[str, Any]]]
"""What `running.play_league` told, by scheme, one a seed."""

OURS = "pfsp"
"""The scheme that is the league's own."""


def ratios(leagues: Leagues) -> dict[str, float | None]:
    """Return the numbers that are held against bounds, each of the worst seed.

    - `nash_conv`: of the mixture of the league's own scheme at the end, in the game's units;
    - `nash_conv_vs_uniform`: the same over that of random play; None where that is 0;
    - `latest_cyclic_share`, `latest_cyclic_share_distinct`: of the payoffs of latest self-play, and the same with near
      copies counted once;
    - `lost_to_random`, `drawn_with_minimax`: shares of the games of the best member, on boards.
    """
    told: dict[str, float | None] = {}
    ours = leagues.get(OURS, ())
    ends = [league["curve"][-1]["mixture"] for league in ours if "mixture" in league["curve"][-1]]
    if ends:
        random_play = ours[0]["references"]["random"]["nash_conv"]
        told["nash_conv"] = max(ends)
        told["nash_conv_vs_uniform"] = max(ends) / random_play if random_play > 1e-9 else None
    for name in ("cyclic_share", "cyclic_share_distinct"):
        shares = [league["payoff"][name] for league in leagues.get("latest", ())]
        if known := [share for share in shares if share is not None]:
            told[f"latest_{name}"] = min(known)
    for name, reference, outcome, worst in (
        ("lost_to_random", "random", "lost", max),
        ("drawn_with_minimax", "minimax", "drawn", min),
    ):
        if values := [
            seat[outcome]
            for league in ours
            for seat in league["references"].get(reference, {}).values()
            if isinstance(seat, Mapping)
        ]:
            told[name] = worst(values)
    return told


def as_text(game: str, leagues: Leagues) -> list[str]:
    """Return lines for people."""
    lines = [f"{game}: {sum(map(len, leagues.values()))} leagues"]
    for scheme, runs in leagues.items():
        for league in runs:
            lines += ["", f"{scheme}, seed {league['seed']}, {league['seconds']:.0f} s"]
            lines += _curve(league["curve"])
            lines += _payoff(league["payoff"])
            lines += _references(league["references"])
    lines += ["", "worst seed"]
    lines += [f"  {name:30}{'-' if value is None else f'{value:.4f}':>8}" for name, value in ratios(leagues).items()]
    return lines


def _curve(rows: Sequence[Mapping[str, float]]) -> list[str]:
    if "mixture" not in rows[-1]:
        return []
    lines = ["  step  NashConv: latest  average  mixture  seconds"]
    lines += [
        f"  {row['step']:4d}{row['latest']:18.4f}{row['average']:9.4f}{row['mixture']:9.4f}{row['seconds']:9.1f}"
        for row in rows
    ]
    return lines


def _payoff(payoff: Mapping[str, Any]) -> list[str]:
    share, distinct, noise = (
        "-" if payoff[name] is None else f"{payoff[name]:.3f}"
        for name in ("cyclic_share", "cyclic_share_distinct", "cyclic_noise")
    )
    beside = (
        f"{distinct} with near copies counted once" if payoff["cyclic_noise"] is None else f"{noise} by chance alone"
    )
    support = payoff["nash_support"]
    lines = [
        f"  payoffs of {len(payoff['students'])} students against {len(payoff['teachers'])} teachers: cyclic share "
        f"{share} ({beside}), student's value {payoff['nash_value']:.3f}, "
        f"support {support['teacher']} and {support['student']}"
    ]
    for side in ("teacher", "student"):
        first = list(payoff["alpha_rank"][side].items())[:3]
        lines.append(f"  alpha-rank, {side}s: " + ", ".join(f"{name} {share:.3f}" for name, share in first))
    return lines


def _references(told: Mapping[str, Any]) -> list[str]:
    lines = []
    for name, figures in told.items():
        if "nash_conv" in figures:
            lines.append(
                f"  {name}: NashConv {figures['nash_conv']:.4f}; against it the mixture gains "
                f"{figures['teachers_gain']:+.4f} as teachers, {figures['students_gain']:+.4f} as students"
            )
            continue
        for seat, one in figures.items():
            lines.append(
                f"  {name}: {seat.replace('_', ' ')} ({one['member']}) won {one['won']:.3f}, "
                f"drew {one['drawn']:.3f}, lost {one['lost']:.3f}"
            )
    return lines
