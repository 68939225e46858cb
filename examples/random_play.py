"""Play one game with scripted seats and show it: python examples/random_play.py [SEED]."""

import sys

from populora_env import GameConfig, text_v0
from populora_env.seats import GeneratorProposer, GuessingSolver


def main(seed: int) -> None:
    """A proposer that invents sound problems meets two solvers that merely guess."""
    config = GameConfig(solver_seats=2)
    policies = {
        "proposer_0": GeneratorProposer(config, seed),
        "solver_0": GuessingSolver(config, seed + 1),
        "solver_1": GuessingSolver(config, seed + 2),
    }
    env = text_v0.env(config=config, render_mode="human")  # shows each round as it is settled
    env.reset(seed=seed)
    returns = dict.fromkeys(env.possible_agents, 0.0)
    for agent in env.agent_iter():
        seen, reward, terminated, truncated, info = env.last()
        returns[agent] += reward  # of all that happened since this agent's last turn
        if terminated or truncated:
            env.step(None)
            continue
        env.step(policies[agent](text_v0.as_observation(seen, info)))
    env.close()
    print("sum of rewards:", ", ".join(f"{agent} {total:+.2f}" for agent, total in returns.items()))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
