"""From settings and played rounds to what learns: LoRA and trainer settings, rollouts, learning rates, metrics.

Pure. Owns which rollouts share a baseline and which are whitened together. Owns no update; that is the trainer's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from league.config import RunConfig, known
from league.lineage import side_of
from league.metric_table import Metric
from league.rounds import PlayedRound
from league.types import Side
from populora_agents.config import LoraConfig, TrainerConfig
from populora_agents.stack import AdapterStack
from populora_agents.trainer import Trainer
from populora_agents.types import MemberUpdate, Rollout, UpdateReport, UpdateRule
from populora_env.types import Role

MakeTrainer = Callable[[RunConfig, AdapterStack], UpdateRule]
"""Makes what learns, of a resolved configuration and for the adapters of a stack; `make_trainer` is one."""


def lora_config(config: RunConfig) -> LoraConfig:
    """Return what is adapted, of a resolved configuration."""
    learn = config.learn
    return LoraConfig(lora_rank=known(learn.lora_rank), alpha=known(learn.alpha), targets=known(learn.targets))


def trainer_config(config: RunConfig) -> TrainerConfig:
    """Return the settings of the update, of a resolved configuration."""
    learn = config.learn
    return TrainerConfig(
        estimator=learn.estimator,
        length=known(learn.length),
        length_constant=known(learn.length_constant),
        clip_low=learn.clip_low,
        clip_high=learn.clip_high,
        max_ratio=learn.max_ratio,
        kl_coefficient=learn.kl_coefficient,
        micro_batch_tokens=learn.micro_batch_tokens,
        shared_row_tokens=learn.shared_row_tokens,
        gradient_checkpointing=learn.gradient_checkpointing,
        adam=learn.adam,
    )


def make_trainer(config: RunConfig, stack: AdapterStack) -> UpdateRule:
    """Return the trainer that a resolved configuration names, of the adapters of `stack`."""
    if config.learn.trainer == "peft":
        from populora_agents.peft_trainer import PeftTrainer  # peft takes a second to import

        return PeftTrainer(stack, trainer_config(config))
    return Trainer(stack, trainer_config(config))


def rollouts_of(played: PlayedRound) -> Iterator[tuple[str, Rollout]]:
    """Yield by id the round's rollouts from which somebody learns: those of the match's learners.

    A group is one reference set's proposals, or one problem's attempts.
    """
    result = played.round.result()
    seats = [(played.proposer, Role.PROPOSER, result.proposer_reward)]
    seats += [(seat, Role.SOLVER, reward) for seat, reward in zip(played.solvers, result.solver_rewards, strict=True)]
    for seat, role, reward in seats:
        if seat.member not in played.match.learners:
            continue
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
                temperature=seat.completion.request.temperature,
            ),
        )


def update_metrics(report: UpdateReport) -> dict[str, float]:
    """Return the update's numbers: `SIDE/NAME` is the mean over those members of a side that have the number."""
    seen: dict[str, list[float]] = {}
    for one in member_updates(report):
        seen.setdefault(f"{one.scope}/{one.name}", []).append(one.value)
    return {name: sum(values) / len(values) for name, values in seen.items()}


def member_updates(report: UpdateReport) -> Iterator[Metric]:
    """Yield the update's numbers of each member, those that it has."""
    for member_id, update in report.members.items():
        scope = side_of(member_id).value
        for name, value in _numbers(update).items():
            if value is not None:
                yield Metric(scope, name, float(value), member_id=member_id)


def _numbers(update: MemberUpdate) -> Mapping[str, float | None]:
    return {
        **update.extra,
        "tokens": update.tokens,
        "loss": update.loss,
        "grad_norm": update.grad_norm,
        "clip_fraction": update.clip_fraction,
        "entropy": update.entropy,
        "entropy_estimate": update.entropy_estimate,
        "logprob_gap": update.logprob_gap,
        "kl": update.kl,
    }


def learning_rate(config: RunConfig, side: Side) -> float:
    """Return the learning rate of a side, of a resolved configuration; a single agent has the students'."""
    learn = config.learn
    return known(learn.teacher_learning_rate if side is Side.TEACHER else learn.student_learning_rate)
