"""PPO on the token face, in one file and with nothing but torch: python examples/train_ppo_token.py --seeds 3.

A random proposer writes programs of the grammar with inputs. All solver seats, played by one network, write what the
program returns, token by token under a mask; the verifier judges. A seat of a game is a row of the batch, an episode is
one round; a row that waits has no choice, and nothing is learned from it.

Three seeds take four minutes on two cores. The share of right answers should go from 0.07, random play's, to 0.3, just
above what answering 0, [] or '' to everything gets: many random programs end in an empty value.
"""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.distributions import Categorical

from populora_env import RewardConfig, Verifier, token_v0

PROPOSER, N_TOKENS, RIGHT = token_v0.PROPOSER, 57, RewardConfig().correct
EVALUATION = 10**6  # seed of the games that no training sees
THREADS = ThreadPoolExecutor(4)  # games stepped in threads wait for the verifier at the same time
Curve = list[dict[str, float]]


def read_arguments() -> Namespace:
    """Return the flags."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--seeds", type=int, default=1, help="seeds 0, 1, ... trained one after the other (default: 1)")
    add("--updates", type=int, default=60, help="updates a seed, each of one batch of play (default: 60)")
    add("--tasks", default="deduction", help="task types, e.g. deduction,abduction,induction (default: deduction)")
    add("--games", type=int, default=16, help="games stepped side by side (default: 16)")
    add("--seats", type=int, default=16, help="solver seats a game, all held by the one network (default: 16)")
    add("--steps", type=int, default=64, help="steps of every game in a batch (default: 64)")
    add("--passes", type=int, default=4, help="times an update goes over its batch (default: 4)")
    add("--minibatch", type=int, default=256, help="choices in a minibatch (default: 256)")
    add("--learning-rate", type=float, default=1e-3, help="Adam's, falling to 0 over the run (default: 1e-3)")
    add("--entropy-cost", type=float, default=0.02, help="weight of the entropy bonus, falling too (default: 0.02)")
    add("--clip", type=float, default=0.2, help="how far an update may move a choice's probability (default: 0.2)")
    add("--episodes", type=int, default=1000, help="fresh episodes for each evaluation (default: 1000)")
    add("--csv", type=Path, help="where to write the curves, a row an update")
    add("--plot", type=Path, help="where to draw them, .svg or .png; needs matplotlib")
    return parser.parse_args()


class Rows(NamedTuple):
    """What the solvers of all games see, a row a seat: N = games * seats."""

    seen: Tensor  # float32 [N, D]
    mask: Tensor  # bool [N, 57]: the legal tokens, NOOP alone for who waits
    reward: Tensor  # float32 [N], of the last step
    over: Tensor  # float32 [N]: 1 where the last step ended an episode; this is the next one's beginning


class Games:
    """Games side by side. The caller holds all solver seats; the proposers choose legal tokens at random."""

    def __init__(self, flags: Namespace, verifier: Verifier, seed: int) -> None:
        """Begin the games; the seed fixes them and their proposers."""
        rules = {"tasks": tuple(flags.tasks.split(",")), "solver_seats": flags.seats, "references": 1, "rounds": 1}
        self._envs = [token_v0.parallel_env(verifier=verifier, **rules) for _ in range(flags.games)]
        self._solvers = self._envs[0].possible_agents[1:]
        for env, root in zip(self._envs, np.random.SeedSequence(seed).generate_state(flags.games), strict=True):
            env.action_space(PROPOSER).seed(int(root))
            env.reset(seed=int(root))
        self.rows = self._look([[0.0] * flags.seats] * flags.games, [False] * flags.games)

    def step(self, tokens: Tensor) -> Rows:
        """Take a token of each row, int64 [N]; what is over begins anew."""
        rewards = list(THREADS.map(self._step, self._envs, tokens.view(len(self._envs), -1).tolist()))
        over = [not env.agents for env in self._envs]
        for env in self._envs:
            if not env.agents:
                env.reset()
        self.rows = self._look(rewards, over)
        return self.rows

    def _step(self, env: token_v0.TokenParallelEnv, chosen: Sequence[int]) -> list[float]:
        actions = dict(zip(self._solvers, chosen, strict=True)) | {PROPOSER: env.action_space(PROPOSER).sample()}
        paid = env.step(actions)[1]
        return [paid[solver] for solver in self._solvers]

    def _look(self, rewards: Sequence[Sequence[float]], over: Sequence[bool]) -> Rows:
        seen = [env.observe(solver) for env in self._envs for solver in self._solvers]
        return Rows(
            seen=torch.from_numpy(np.stack([each["observation"] for each in seen])),
            mask=torch.from_numpy(np.stack([each["action_mask"] for each in seen])).bool(),
            reward=torch.tensor(rewards).flatten(),
            over=torch.tensor(over).float().repeat_interleave(len(self._solvers)),
        )


class Agent(nn.Module):
    """Actor and critic, a network each."""

    def __init__(self, n_inputs: int) -> None:
        """Make it untrained."""
        super().__init__()
        self.actor = network(n_inputs, N_TOKENS)
        self.critic = nn.Sequential(network(n_inputs, 1), nn.Flatten(-2))

    def policy(self, seen: Tensor, mask: Tensor) -> Categorical:
        """Return what each row may choose, and how likely it is."""
        return Categorical(logits=self.actor(seen).masked_fill(~mask, -1e9), validate_args=False)


def network(n_inputs: int, n_outputs: int) -> nn.Sequential:
    """Return two hidden layers; the output layer starts small, so that play starts nearly random."""
    last = nn.Linear(256, n_outputs)
    nn.init.orthogonal_(last.weight, 0.01)
    return nn.Sequential(nn.Linear(n_inputs, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), last)


@torch.no_grad()
def play(games: Games, agent: Agent, steps: int) -> dict[str, Tensor]:
    """Play so many steps and return each choice made, [choices, ...], and the answers' rewards under `paid`."""
    kept: dict[str, list[Tensor]] = {name: [] for name in ("seen", "mask", "token", "logprob", "value", "paid", "over")}
    for _ in range(steps):
        seen, mask, *_ = games.rows
        policy = agent.policy(seen, mask)
        token = policy.sample()
        *_, reward, over = games.step(token)
        values = (seen, mask, token, policy.log_prob(token), agent.critic(seen), reward, over)
        for name, value in zip(kept, values, strict=True):
            kept[name].append(value)
    follows, target = agent.critic(games.rows.seen), []
    for reward, over in zip(reversed(kept["paid"]), reversed(kept["over"]), strict=True):
        follows = reward + (1 - over) * follows  # without discount: the generalised advantage estimate at lambda 1
        target.append(follows)
    batch = {name: torch.stack(values) for name, values in kept.items()} | {"target": torch.stack(target[::-1])}
    paid = batch.pop("paid")[batch.pop("over") > 0]
    acts = batch["mask"].sum(-1) > 1
    return {name: values[acts] for name, values in batch.items()} | {"paid": paid}


def learn(agent: Agent, optimiser: torch.optim.Adam, batch: dict[str, Tensor], flags: Namespace, left: float) -> float:
    """Improve the agent on a batch, `left` of the run to go; return the mean entropy of its choices."""
    optimiser.param_groups[0]["lr"] = left * flags.learning_rate
    advantage = batch["target"] - batch["value"]
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-6)
    entropies = []
    for _ in range(flags.passes):
        for rows in torch.randperm(len(advantage)).split(flags.minibatch):
            policy = agent.policy(batch["seen"][rows], batch["mask"][rows])
            ratio = (policy.log_prob(batch["token"][rows]) - batch["logprob"][rows]).exp()
            clipped = ratio.clamp(1 - flags.clip, 1 + flags.clip)
            gain = torch.min(ratio * advantage[rows], clipped * advantage[rows]).mean()
            miss = (agent.critic(batch["seen"][rows]) - batch["target"][rows]).square().mean()
            entropy = policy.entropy().mean()
            optimiser.zero_grad()
            (0.5 * miss - gain - left * flags.entropy_cost * entropy).backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimiser.step()
            entropies.append(entropy.item())
    return float(np.mean(entropies))


def train(flags: Namespace, verifier: Verifier, seed: int) -> tuple[Agent, Curve]:
    """Return a trained agent, and a row of figures an update."""
    torch.manual_seed(seed)
    games = Games(flags, verifier, seed)
    agent = Agent(games.rows.seen.shape[-1])
    optimiser = torch.optim.Adam(agent.parameters())
    curve: Curve = []
    answers, began = 0, time.monotonic()
    for update in range(1, flags.updates + 1):
        batch = play(games, agent, flags.steps)
        entropy = learn(agent, optimiser, batch, flags, 1 - (update - 1) / flags.updates)
        answers, right = answers + len(batch["paid"]), (batch["paid"] == RIGHT).float().mean().item()
        curve.append({"seed": seed, "update": update, "answers": answers, "right": right, "entropy": entropy})
        if update == 1 or update % 10 == 0:
            figures = f"{seed:4d}  {update:6d}  {answers:7d}  {right:5.3f}  {entropy:7.3f}"
            print(f"{figures}  {time.monotonic() - began:7.0f}", flush=True)
    return agent, curve


@torch.no_grad()
def evaluate(flags: Namespace, verifier: Verifier, choose: Callable[[Rows], Tensor]) -> tuple[float, float, float]:
    """Return the share right in fresh episodes, the same at every call, and the ends of its 95 % interval."""
    games = Games(flags, verifier, EVALUATION)
    shares: list[list[float]] = [[] for _ in range(flags.games)]
    wanted = -(-flags.episodes // flags.games)
    while min(map(len, shares)) < wanted:  # of each game as many: else short episodes would count for more
        rows = games.step(choose(games.rows))
        right = (rows.reward == RIGHT).float().view(flags.games, -1).mean(-1)
        for game in rows.over.view(flags.games, -1)[:, 0].nonzero().flatten().tolist():
            shares[game].append(right[game].item())
    kept = [share for each in shares for share in each[:wanted]]
    mean, half = float(np.mean(kept)), 1.96 * float(np.std(kept)) / len(kept) ** 0.5  # an episode is one draw
    return mean, mean - half, mean + half


def draw(curves: Sequence[Curve], levels: dict[str, float], path: Path) -> None:
    """Draw the share right over training, a line a seed, and as dashed lines what the untrained reach."""
    from matplotlib.figure import Figure

    axes = (figure := Figure(figsize=(7, 3.5), layout="constrained")).subplots()
    for seed, curve in enumerate(curves):
        axes.plot([row["answers"] for row in curve], [row["right"] for row in curve], label=f"PPO, seed {seed}")
    for place, (name, mean) in enumerate(levels.items()):
        axes.axhline(mean, color=f"{0.6 - 0.6 * place}", linestyle="--", linewidth=1, label=name)
    axes.set(xlabel="answers", ylabel="share right", ylim=(0, None))
    figure.legend(loc="outside right upper", frameon=False)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def main() -> None:
    """Train on each seed, and set the trained solvers beside untrained ones."""
    flags = read_arguments()
    torch.set_num_threads(1)  # the networks are small, and the verifier wants the other cores
    draws = torch.Generator().manual_seed(0)
    untrained: dict[str, Callable[[Rows], Tensor]] = {
        "random play": lambda rows: torch.multinomial(rows.mask.float(), 1, generator=draws).flatten(),
        "always 0, [] or ''": lambda rows: rows.mask.float().argmax(-1),  # in deduction; the first legal token
    }
    with Verifier() as verifier:
        print("seed  update  answers  right  entropy  seconds")
        trained = [train(flags, verifier, seed) for seed in range(flags.seeds)]
        levels = {name: evaluate(flags, verifier, choose) for name, choose in untrained.items()}
        found = {
            f"PPO, seed {seed}": evaluate(flags, verifier, lambda rows, agent=agent: agent.policy(*rows[:2]).mode)
            for seed, (agent, _) in enumerate(trained)
        }
    print(f"\nshare right on {flags.episodes} fresh episodes, with its 95 % interval")
    for name, (mean, low, high) in (levels | found).items():
        print(f"  {name:18}  {mean:.3f}  [{low:.3f}, {high:.3f}]")
    curves = [curve for _, curve in trained]
    if flags.csv:
        table = [list(row.values()) for curve in curves for row in curve]
        np.savetxt(flags.csv, table, fmt="%.6g", delimiter=",", header=",".join(curves[0][0]), comments="")
    if flags.plot:
        draw(curves, {name: mean for name, (mean, _, _) in levels.items()}, flags.plot)


if __name__ == "__main__":
    main()
