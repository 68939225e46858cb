"""`PeftTrainer`: the update of `trainer.Trainer`, done the plain way: one PEFT model a member, one after the other.

The reference that the fused trainer is held against, and what it saves is measured by. Slow: the base is run once a
member and micro-batch, and no two rollouts share a row. Owns the way to PEFT and back; what is learnt is in `lesson`.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import peft
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from populora_agents.advantages import ESTIMATORS, Estimator, rollout_advantages
from populora_agents.batching import MicroBatch
from populora_agents.checkpointing import checkpointed_blocks
from populora_agents.config import TrainerConfig
from populora_agents.lesson import Lesson
from populora_agents.lora import peft_config
from populora_agents.losses import Objective
from populora_agents.optimizer import check_moments
from populora_agents.scoring import Scores, score
from populora_agents.stack import AdapterStack
from populora_agents.trainer import configured_objective
from populora_agents.types import DivergedError, Rollout, UpdateReport

_ADAPTER = "default"


class PeftMember:
    """One member's PEFT model over the stack's base, with an AdamW of torch's own."""

    def __init__(self, stack: AdapterStack, slot: int, config: TrainerConfig):
        """Wrap modules of its own around the weights of the base."""
        self._stack, self._slot = stack, slot
        stack.check_slot(slot)
        fields = peft_config(stack.config, "") | {"inference_mode": False}
        with torch.random.fork_rng(), warnings.catch_warnings():  # PEFT draws an A of its own, which `pull` replaces
            # PEFT asks transformers 5 for a property by its old name.
            warnings.filterwarnings(
                "ignore", message="`is_gradient_checkpointing` is deprecated", category=FutureWarning
            )
            self.model = peft.get_peft_model(stack.bare_model(), peft.LoraConfig(**fields), _ADAPTER)
        self.model.eval()
        self.factors = tuple(self._factors())
        adam = config.adam
        self.optimizer = torch.optim.AdamW(
            self.factors,
            lr=0.0,  # set before every step
            betas=(adam.beta1, adam.beta2),
            eps=adam.eps,
            weight_decay=adam.weight_decay,
        )

    def pull(self) -> None:
        """Take over the factors that the stack holds."""
        self._unflatten(self._stack.values[self._slot], [factor.data for factor in self.factors])

    def push(self) -> None:
        """Give the factors back to the stack."""
        self._stack.values[self._slot].copy_(_flat([factor.data for factor in self.factors]))

    def moments(self) -> tuple[Tensor, Tensor, int]:
        """Return first and second moments [P], in the order of the stack's factors, and the count of steps."""
        states = [self.optimizer.state.get(factor, {}) for factor in self.factors]
        first, second = (
            _flat([state.get(name, torch.zeros_like(f)) for state, f in zip(states, self.factors, strict=True)])
            for name in ("exp_avg", "exp_avg_sq")
        )
        return first, second, int(states[0].get("step", 0))

    def set_moments(self, first: Tensor, second: Tensor, count: int) -> None:
        """Take over what `moments` gave; no steps is no state."""
        self.optimizer.state.clear()
        if not count:
            return
        for factor in self.factors:
            self.optimizer.state[factor] = {
                "step": torch.tensor(float(count)),
                "exp_avg": torch.zeros_like(factor),
                "exp_avg_sq": torch.zeros_like(factor),
            }
        for name, flat in (("exp_avg", first), ("exp_avg_sq", second)):
            self._unflatten(flat, [self.optimizer.state[factor][name] for factor in self.factors])

    def _factors(self) -> Iterator[nn.Parameter]:
        """Yield A and B of every module in the stack's order, in the stack's dtype."""
        for path in self._stack.modules():
            module: Any = self.model.get_submodule(f"base_model.model.{path}")
            for factor in (module.lora_A[_ADAPTER], module.lora_B[_ADAPTER]):
                factor.to(self._stack.values.dtype)
                yield factor.weight

    @staticmethod
    def _unflatten(flat: Tensor, parts: Sequence[Tensor]) -> None:
        for part, values in zip(parts, torch.split(flat, [part.numel() for part in parts]), strict=True):
            part.copy_(values.view(part.shape))


class PeftTrainer:
    """Learns as `trainer.Trainer` does, one member after the other; a `types.UpdateRule`."""

    def __init__(
        self,
        stack: AdapterStack,
        config: TrainerConfig | None = None,
        *,
        estimator: Estimator | None = None,
        objective: Objective | None = None,
    ):
        """Train the adapters of `stack`; arguments are those of `Trainer`."""
        self._stack = stack
        self._config = config or TrainerConfig()
        self._estimator = estimator or ESTIMATORS[self._config.estimator]
        self._objective = objective or configured_objective(self._config)
        self._members: dict[int, PeftMember] = {}

    def advantages(self, rollouts: Sequence[Rollout]) -> NDArray[np.float64]:
        """Return one advantage a rollout, [N]."""
        return rollout_advantages(rollouts, self._estimator)

    def update(
        self,
        rollouts: Sequence[Rollout],
        advantages: ArrayLike,
        slots: Mapping[str, int],
        learning_rates: Mapping[str, float],
    ) -> UpdateReport:
        """Update every member that has something to learn; see `Trainer.update`.

        Raises:
            ValueError: As there.
            DivergedError: As there; no member has moved.
        """
        began = time.perf_counter()
        lesson = Lesson(rollouts, advantages, slots, learning_rates, self._config)
        norms: dict[str, float] = {}
        for name in lesson.active:
            member = self._member(slots[name])
            with checkpointed_blocks(member.model) if self._config.gradient_checkpointing else nullcontext():
                norms[name] = self._gradients(lesson, name, member)
        broken = [name for name, norm in norms.items() if not norm < float("inf")]
        if broken:
            raise DivergedError(broken, "gradients are")
        for name in lesson.active:
            member = self._member(slots[name])
            member.optimizer.param_groups[0]["lr"] = learning_rates[name]
            member.optimizer.step()
            member.push()
        return UpdateReport(members=lesson.report(norms), seconds=time.perf_counter() - began)

    def reset_slot(self, slot: int) -> None:
        """Forget the optimiser state of one slot: a new member moves in."""
        self._member(slot).optimizer.state.clear()

    def state_dict(self) -> dict[str, Tensor]:
        """Return moments and counts in the fused trainer's form, so that either can go on where the other stopped."""
        states = [self._member(slot).moments() for slot in range(self._stack.slots)]
        return {
            "first": torch.stack([first for first, _, _ in states]).cpu(),
            "second": torch.stack([second for _, second, _ in states]).cpu(),
            "counts": torch.tensor([count for _, _, count in states], dtype=torch.int64),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave, here or in the fused trainer.

        Raises:
            ValueError: The shapes are those of another stack.
        """
        check_moments(state, self._stack.values)
        for slot in range(self._stack.slots):
            first, second = (state[name][slot].to(self._stack.device) for name in ("first", "second"))
            self._member(slot).set_moments(first, second, int(state["counts"][slot]))

    def _member(self, slot: int) -> PeftMember:
        if slot not in self._members:
            self._members[slot] = PeftMember(self._stack, slot, self._config)
        return self._members[slot]

    def _gradients(self, lesson: Lesson, name: str, member: PeftMember) -> float:
        """Compute and clip one member's gradients; return their norm before clipping."""
        config = self._config
        member.pull()
        member.optimizer.zero_grad()
        for batch in lesson.micro_batches(config.micro_batch_tokens, shared_row_tokens=0, member=name):
            reference = None
            if config.kl_coefficient:
                with torch.no_grad(), member.model.disable_adapter():
                    reference = self._score(member, batch).logprobs
            loss = lesson.loss(batch, self._score(member, batch), reference, self._objective)
            # torch's stubs leave backward untyped.
            loss.backward()  # type: ignore[no-untyped-call]
        return float(nn.utils.clip_grad_norm_(member.factors, config.adam.max_grad_norm))

    def _score(self, member: PeftMember, batch: MicroBatch) -> Scores:
        return score(member.model, batch, device=self._stack.device)


def _flat(parts: Sequence[Tensor]) -> Tensor:
    return torch.cat([part.flatten() for part in parts])
