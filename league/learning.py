"""From settings and played rounds to what learns: LoRA and trainer settings, rollouts, learning rates, metrics.

Pure. Owns which rollouts share a baseline and which are whitened together. Owns no update; that is the trainer's.
"""

from __future__ import annotations

from collections.abc import Iterator

from league.config import RunConfig, known
from league.lineage import side_of
from league.rounds import PlayedRound
from league.types import Side
from populora_agents.config import LoraConfig, TrainerConfig
from populora_agents.types import Rollout, UpdateReport
from populora_env.types import Role


def lora_config(config: RunConfig) -> LoraConfig:
    """Return what is adapted, of a resolved configuration."""
    learn = config.learn
    return LoraConfig(lora_rank=known(learn.lora_rank), alpha=known(learn.alpha), targets=known(learn.targets))


def trainer_config(config: RunConfig) -> TrainerConfig:
    """Return the settings of the update, of a resolved configuration."""
    learn = config.learn
    return TrainerConfig(
        clip_low=learn.clip_low,
        clip_high=learn.clip_high,
        max_ratio=learn.max_ratio,
        temperature=config.play.temperature,
        micro_batch_tokens=learn.micro_batch_tokens,
        adam=learn.adam,
    )


def rollouts_of(played: PlayedRound) -> Iterator[tuple[str, Rollout]]:
    """Yield the round's rollouts by id: a group is one reference set's proposals, or one problem's attempts."""
    result = played.round.result()
    seats = [(played.proposer, Role.PROPOSER, result.proposer_reward)]
    seats += [(seat, Role.SOLVER, reward) for seat, reward in zip(played.solvers, result.solver_rewards, strict=True)]
    for seat, role, reward in seats:
        yield (
            seat.rollout_id,
            Rollout(
                member_id=seat.member.member_id,
                batch=f"{role}/{result.task}",
                group_id=seat.group_id,
                prompt_ids=seat.completion.prompt_ids,
                token_ids=seat.completion.token_ids,
                logprobs=seat.completion.logprobs,
                reward=reward,
            ),
        )


def update_metrics(report: UpdateReport) -> dict[str, float]:
    """Return the update's numbers, as means over the members of each side."""
    metrics: dict[str, float] = {}
    for side in Side:
        members = [update for name, update in report.members.items() if side_of(name) is side]
        for name in ("tokens", "loss", "grad_norm", "clip_fraction", "entropy", "logprob_gap"):
            if members:
                metrics[f"{side.value}/{name}"] = sum(getattr(one, name) for one in members) / len(members)
    return metrics


def learning_rate(config: RunConfig, side: Side) -> float:
    """Return the learning rate of a side, of a resolved configuration."""
    learn = config.learn
    return known(learn.teacher_learning_rate if side is Side.TEACHER else learn.student_learning_rate)
