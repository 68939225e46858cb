"""A language model in the seats of the environment: python examples/llm_policy.py [--base BASE] [--adapter FOLDER].

Any callable from an observation to a text is a policy. Here a base model (nano ships with the project; a model folder
or a hub id will do too) proposes and solves, beside a solver that merely guesses, on the problems of the same rounds.
You should see the first three rounds, then a summary: of nano's proposals most are valid, it solves about half of them,
the guesser next to none. It takes about ten seconds on two cores.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

from populora_agents.backends.torch import TorchBackend
from populora_agents.bases import Base, load_base
from populora_agents.lora import load_adapter
from populora_agents.policies import LoraPolicy
from populora_agents.stack import AdapterStack
from populora_agents.types import AdapterVersion
from populora_env import GameConfig, as_observation, text_v0
from populora_env.rendering import render_round
from populora_env.seats import GuessingSolver
from populora_env.types import Policy, Role

SHOWN_ROUNDS = 3


def make_policies(base: Base, adapter: Path | None, config: GameConfig, seed: int) -> dict[str, Policy]:
    """Put the bare base into the proposer's seat, base and adapter into a solver's, and a guesser into another's."""
    member, stack = None, None
    if adapter is not None:
        factors, lora = load_adapter(adapter)
        member, stack = AdapterVersion(member_id="member", version=0), AdapterStack(base.model, lora, slots=1)
        stack.load(0, factors)
    backend = TorchBackend(base, stack, {"member": (0, 0)})
    preset = base.preset
    longest = {Role.PROPOSER: preset.max_new_tokens_proposal, Role.SOLVER: preset.max_new_tokens_answer}
    return {
        "proposer_0": LoraPolicy(backend, None, max_new_tokens=longest, temperature=1.0, seed=seed),
        "solver_0": LoraPolicy(backend, member, max_new_tokens=longest, temperature=0.0, seed=seed),
        "solver_1": GuessingSolver(config, seed),
    }


def main() -> None:
    """Play one episode and say how each seat did."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", default="nano", help="base model: nano, a folder or a hub id (default: nano)")
    parser.add_argument("--adapter", type=Path, help="LoRA adapter of the solver, a folder in PEFT's format")
    parser.add_argument("--rounds", type=int, default=30, help="rounds (default: 30)")
    parser.add_argument("--seed", type=int, default=0, help="root of all draws (default: 0)")
    arguments = parser.parse_args()

    base = load_base(arguments.base)
    config = GameConfig(  # the prompts that this base knows or understands
        style=base.preset.style,
        references=base.preset.references,
        induction_inputs=base.preset.induction_inputs,
        solver_seats=2,
        rounds=arguments.rounds,
    )
    policies = make_policies(base, arguments.adapter, config, arguments.seed)
    returns: dict[str, float] = defaultdict(float)
    env = text_v0.env(config=config)
    env.reset(seed=arguments.seed)
    for agent in env.agent_iter():
        seen, reward, terminated, truncated, info = env.last()
        returns[agent] += reward  # of all that happened since this agent's last turn
        env.step(None if terminated or truncated else policies[agent](as_observation(seen, info)))
    env.close()

    results = env.unwrapped.game.results
    for number, result in enumerate(results[:SHOWN_ROUNDS], start=1):
        print(render_round(result, number=number))
    valid = [result for result in results if result.problem is not None]
    mean = returns["proposer_0"] / len(results)
    print(f"\n{len(valid)} of {len(results)} proposals were valid; mean reward {mean:+.2f}")
    for seat, who in enumerate((f"{base.name} solved", "guesses solved")):
        solved = sum(result.attempt_verdicts[seat].ok for result in valid)
        mean = returns[f"solver_{seat}"] / max(1, len(valid))
        print(f"{who:16}{solved:3} of {len(valid)}; mean reward {mean:+.2f}")


if __name__ == "__main__":
    main()
