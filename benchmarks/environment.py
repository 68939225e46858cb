"""How fast the environment steps: tokens beside PettingZoo's connect_four, many games beside one by one, in one run.

    python benchmarks/environment.py [--json] [--rounds N] [--steps N] [--only tokens|vector]

Tokens: random masked play of `token_v0.env()` and of `connect_four_v3.env()`, each with its wrappers, `last()`, a
sampled action and `step()` counted as one step, resets included; a judge that runs nothing takes the verifier's place.
Both play in turn, in slices; the ratio is taken within a slice, and what is printed are medians over the rounds.
Connect four needs pygame (the extra `bench` brings it); without it the ratio is null. Vector: see `environment_vector`.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import time
from collections.abc import Hashable, Sequence
from typing import Any

from environment_vector import busy_lines, vector_figures

from populora_env import token_v0
from populora_env.types import Answer, Problem, Proposal, ProposalVerdict, Status, Verdict

FLOORS = {"token_vs_connect_four": 1.0, "vec64_vs_one_by_one": 1.6}
"""Ratios that must hold."""
_NOUNS = {"token": "token_v0", "connect_four": "connect_four_v3", "vec64": "make_vec(64)", "one_by_one": "one by one"}


class NoVerifier:
    """A judge that runs nothing: every proposal is valid and gives 0 everywhere, every answer is wrong."""

    def check_proposals(
        self, proposals: Sequence[Proposal], *, owners: Sequence[Hashable] | None = None
    ) -> list[ProposalVerdict]:
        """Admit all proposals."""
        del owners
        good = Verdict(status=Status.OK)
        return [
            ProposalVerdict(verdict=good, inputs=proposal.inputs, outputs=("0",) * len(proposal.inputs))
            for proposal in proposals
        ]

    def check_answers(
        self, attempts: Sequence[tuple[Problem, Answer]], *, owners: Sequence[Hashable] | None = None
    ) -> list[Verdict]:
        """Refuse all answers."""
        del owners
        return [Verdict(status=Status.WRONG)] * len(attempts)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--rounds", type=int, default=7, help="rounds (default: 7)")
    parser.add_argument("--steps", type=int, default=10_000, help="steps of each game a round (default: 10000)")
    parser.add_argument("--only", choices=("tokens", "vector"), help="measure one part alone")
    arguments = parser.parse_args()
    if arguments.rounds < 1 or arguments.steps < 1:
        parser.error("`--rounds` and `--steps` must be at least 1")
    figures: dict[str, Any] = {"ratios": {}, "steps_per_s": {}, "rounds": arguments.rounds}
    if arguments.only != "vector":
        merge(figures, token_figures(arguments.rounds, arguments.steps))
    if arguments.only != "tokens":
        merge(figures, vector_figures(arguments.rounds))
    print(json.dumps(figures) if arguments.json else as_text(figures))


def merge(figures: dict[str, Any], more: dict[str, Any]) -> None:
    """Add figures to figures; tables under the same name are joined."""
    for name, value in more.items():
        figures[name] = figures[name] | value if isinstance(value, dict) and name in figures else value


def token_figures(rounds: int, steps: int) -> dict[str, Any]:
    """Return steps a second of both games and their ratio, medians over the rounds.

    Args:
        rounds: Rounds, at least 1.
        steps: Steps of each game a round, at least 1.
    """
    ours = Player(token_v0.env(verifier=NoVerifier()))
    other = None
    if importlib.util.find_spec("pygame") is not None:
        from pettingzoo.classic import connect_four_v3

        other = Player(connect_four_v3.env())
    rates: list[tuple[float, float | None]] = []
    for number in range(rounds + 1):
        rate = ours.steps_per_s(steps)
        pair = rate, None if other is None else other.steps_per_s(steps)
        if number:  # the first round fills caches
            rates.append(pair)
    ratios = [rate / beside for rate, beside in rates if beside is not None]
    besides = [beside for _, beside in rates if beside is not None]
    return {
        "ratios": {"token_vs_connect_four": statistics.median(ratios) if ratios else None},
        "steps_per_s": {
            "token": statistics.median(rate for rate, _ in rates),
            "connect_four": statistics.median(besides) if besides else None,
        },
    }


class Player:
    """Random masked play of one AEC environment, episode after episode."""

    def __init__(self, env: Any) -> None:
        """Begin the first episode; everything is drawn from seed 0."""
        self._env = env
        env.reset(seed=0)
        for place, agent in enumerate(env.possible_agents):
            env.action_space(agent).seed(place)

    def steps_per_s(self, steps: int) -> float:
        """Play so many steps and return how many there were a second."""
        env = self._env
        began = time.perf_counter()
        for _ in range(steps):
            observation, _, terminated, truncated, _ = env.last()
            if terminated or truncated:
                env.step(None)
                if not env.agents:
                    env.reset()
            else:
                env.step(env.action_space(env.agent_selection).sample(observation["action_mask"]))
        return steps / (time.perf_counter() - began)


def as_text(figures: dict[str, Any]) -> str:
    """Return the figures as a table for people."""
    lines = [f"medians of {figures['rounds']} rounds", "", "steps a second"]
    for name, rate in figures["steps_per_s"].items():
        lines.append(
            f"  {_NOUNS[name]:22}" + (f"{rate:9.0f}" if rate is not None else "  left out: pygame is not installed")
        )
    lines += ["", "ratios"]
    for name, ratio in figures["ratios"].items():
        if ratio is not None:
            lines.append(f"  {name:22}{ratio:9.2f}   must be at least {FLOORS[name]:g}")
    if "zygotes_busy" in figures:
        lines += ["", *busy_lines(figures)]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
