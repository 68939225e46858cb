"""LoRA policies over vLLM in the seats of the environment: python examples/vllm_policies.py [--base BASE].

One engine serves all seats: a member proposes, another one and the bare base solve, each step through `last()` and
`step()` as in any PettingZoo environment. The members here are fresh adapters moved at random; a league's lie in its
`adapters/`. You should see who played which seat, and what a round looked like. It needs vLLM (docs/serving.md) and
takes about half a minute on two idle cores, most of it for the engine to start.
"""

from __future__ import annotations

import argparse

import torch

from populora_agents.backends.vllm import VllmBackend
from populora_agents.backends.vllm_config import EngineConfig
from populora_agents.bases import load_base
from populora_agents.config import LoraConfig
from populora_agents.lora import LoraFactors, fresh_adapter
from populora_agents.policies import LoraPolicy
from populora_agents.stack import AdapterStack
from populora_agents.types import AdapterVersion
from populora_env import GameConfig, as_observation, env
from populora_env.rendering import render_round
from populora_env.types import Role

MEMBERS = ("teacher", "student")


def main() -> None:
    """Play one episode and show it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", default="nano", help="base model: nano, a folder or a hub id (default: nano)")
    parser.add_argument("--rounds", type=int, default=6, help="rounds (default: 6)")
    parser.add_argument("--seed", type=int, default=0, help="root of all draws (default: 0)")
    arguments = parser.parse_args()

    base = load_base(arguments.base)
    preset = base.preset
    stack = AdapterStack(base.model, LoraConfig(lora_rank=preset.lora_rank, alpha=preset.alpha), len(MEMBERS))
    for slot in range(len(MEMBERS)):
        generator = torch.Generator().manual_seed(arguments.seed + slot)
        fresh = fresh_adapter(base.model, stack.config, generator)
        moved = {
            path: LoraFactors(A=pair.A, B=1e-3 * torch.randn(pair.B.shape, generator=generator))
            for path, pair in fresh.items()
        }
        stack.load(slot, moved)
    slots = {name: (slot, 0) for slot, name in enumerate(MEMBERS)}

    backend = VllmBackend(base, stack, slots, EngineConfig(max_slots=len(MEMBERS)))
    seats = {"proposer_0": "teacher", "solver_0": "student", "solver_1": None}
    longest = {Role.PROPOSER: preset.max_new_tokens_proposal, Role.SOLVER: preset.max_new_tokens_answer}
    policies = {
        seat: LoraPolicy(
            backend,
            None if member is None else AdapterVersion(member_id=member, version=0),
            max_new_tokens=longest,
            seed=arguments.seed,
        )
        for seat, member in seats.items()
    }
    config = GameConfig(
        style=preset.style,
        references=preset.references,
        induction_inputs=preset.induction_inputs,
        solver_seats=2,
        rounds=arguments.rounds,
    )
    game = env(config=config)
    game.reset(seed=arguments.seed)
    for agent in game.agent_iter():
        seen, _, terminated, truncated, info = game.last()
        game.step(None if terminated or truncated else policies[agent](as_observation(seen, info)))
    results = game.unwrapped.game.results
    game.close()

    for seat, member in seats.items():
        print(f"{seat}: {member or f'the bare {base.name}'}")
    for number, result in enumerate(results, start=1):
        print(render_round(result, number=number))
    print(f"{sum(result.problem is not None for result in results)} of {len(results)} proposals were valid")
    print(f"adapters in the engine: {', '.join(sorted(map(str, backend.loaded)))}")
    backend.close()


if __name__ == "__main__":
    main()
