"""What it costs to train eight members instead of one, and what one fused update saves over eight PEFT updates.

    python benchmarks/population_training.py [--json] [--rounds N] [--part PART ...]

Parts: `nano` and `slice` (four layers of Qwen2.5-7B's shapes, random weights) time updates, `generation` what
`benchmarks/generation.py` times, `memory` runs an update of 1, 8 and 64 members in processes of their own, `gpu` takes
the full shapes of Qwen2.5-7B in bfloat16 and needs CUDA. All ways learn from the same tokens, in turn within each
round; ratios of seconds, medians over the rounds.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from generation import LORA, MEMBERS, QWEN_SHAPES, QWEN_SLICE, ModelName, measure_generation, random_qwen
from torch import nn
from transformers import Qwen2Config

from league.machine import prepare_torch
from populora_agents.bases import load_base
from populora_agents.config import LoraConfig, TrainerConfig
from populora_agents.lora import fresh_adapter
from populora_agents.peft_trainer import PeftTrainer
from populora_agents.stack import AdapterStack
from populora_agents.trainer import Trainer
from populora_agents.types import Rollout, UpdateRule

QWEN_7B = Qwen2Config(**QWEN_SHAPES, vocab_size=152064, num_hidden_layers=28, max_position_embeddings=32768)
SLOTS = {f"member_{slot}": slot for slot in range(MEMBERS)}
RATES = dict.fromkeys(SLOTS, 1e-3)
PARTS = ("nano", "slice", "generation", "memory", "gpu")
Way = Callable[[], object]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--rounds", type=int, default=5, help="rounds (default: 5)")
    parser.add_argument("--part", nargs="+", choices=PARTS, default=PARTS[:-1], help="parts (default: all but gpu)")
    parser.add_argument("--threads", type=int, default=1, help="threads of torch (default: 1)")
    arguments = parser.parse_args()
    prepare_torch(arguments.threads)
    figures: dict[str, Any] = {"ratios": {}, "rounds": arguments.rounds, "threads": arguments.threads}
    for part in arguments.part:
        for key, values in _measure(part, arguments.rounds).items():
            figures.setdefault(key, {}).update(values)
    if arguments.json:
        print(json.dumps(figures))
        return
    for key, values in figures.items():
        for name, value in values.items() if isinstance(values, dict) else [("", values)]:
            print(f"{key:14} {name:40} {value:10.4g}")


def _measure(part: str, rounds: int) -> dict[str, Mapping[str, float]]:
    if part == "nano":
        return measure_nano(rounds)
    if part == "slice":
        return measure_slice(rounds)
    if part == "memory":
        return measure_memory()
    if part == "gpu":
        return measure_gpu(rounds)
    ratios: dict[str, float] = {}
    models: dict[str, ModelName] = {"": "nano", "_slice": "qwen_slice"}
    for suffix, model in models.items():
        found = measure_generation(model, rounds)
        ratios |= {f"{name}{suffix}": value for name, value in found.items() if name.startswith("generate")}
    return {"ratios": ratios}


def measure_nano(rounds: int) -> dict[str, Mapping[str, float]]:
    """Time updates of 8 x 8 rows of 40 tokens on nano: each with a prompt of its own, and in groups of four."""
    model, lora = load_base("nano").model, LORA["nano"]
    eight = _stack(model, lora, MEMBERS)
    one = _stack(eight.bare_model(), lora, 1)
    fused, single, reference = Trainer(eight), Trainer(one), PeftTrainer(eight)
    rows, groups = (
        rollouts(8, prompt_tokens=24, new_tokens=16, vocabulary=model.config.vocab_size, per_prompt=per_prompt)
        for per_prompt in (1, 4)
    )
    alone = [_of_member_0(rollout) for rollout in rows]
    seconds = _interleaved(
        {
            "eight": lambda: _update(fused, rows),
            "one": lambda: _update(single, alone),
            "peft": lambda: _update(reference, rows),
            "eight_groups": lambda: _update(fused, groups),
            "peft_groups": lambda: _update(reference, groups),
        },
        rounds,
    )
    ratios = {
        "train_8_vs_1": _ratio(seconds, "eight", "one"),
        "fused_vs_sequential_peft": _ratio(seconds, "peft", "eight"),
        "fused_vs_sequential_peft_groups": _ratio(seconds, "peft_groups", "eight_groups"),
    }
    return {"ratios": ratios, "seconds": {name: _median(seconds, name) for name in seconds[0]}}


def measure_slice(rounds: int) -> dict[str, Mapping[str, float]]:
    """Time updates of 8 x 1 rows of 24 tokens on four layers of Qwen2.5-7B's shapes, in float32 on a CPU."""
    lora = LORA["qwen_slice"]
    eight = _stack(random_qwen(QWEN_SLICE, torch.float32, "cpu"), lora, MEMBERS)
    one = _stack(eight.bare_model(), lora, 1)
    rows = rollouts(1, prompt_tokens=16, new_tokens=8, vocabulary=QWEN_SLICE.vocab_size)
    alone = [_of_member_0(rollout) for rollout in rows]
    fused, single = Trainer(eight), Trainer(one)
    seconds = _interleaved(
        {"slice_eight": lambda: _update(fused, rows), "slice_one": lambda: _update(single, alone)}, rounds
    )
    ratios = {"train_8_vs_1_slice": _ratio(seconds, "slice_eight", "slice_one")}
    return {"ratios": ratios, "seconds": {name: _median(seconds, name) for name in seconds[0]}}


def measure_gpu(rounds: int) -> dict[str, Mapping[str, float]]:
    """Time updates of 8 x 8 rows of 1,024 tokens on Qwen2.5-7B's shapes in bfloat16, r = 32. Needs about 60 GiB."""
    if not torch.cuda.is_available():
        raise SystemExit("the part `gpu` needs a CUDA device")
    lora = LORA["qwen_slice"]
    eight = _stack(random_qwen(QWEN_7B, torch.bfloat16, "cuda"), lora, MEMBERS)
    one = _stack(eight.bare_model(), lora, 1)
    rows = rollouts(8, prompt_tokens=512, new_tokens=512, vocabulary=QWEN_7B.vocab_size)
    alone = [_of_member_0(rollout) for rollout in rows]
    config = TrainerConfig(micro_batch_tokens=8192, gradient_checkpointing=True)
    fused, single = Trainer(eight, config), Trainer(one, config)
    torch.cuda.reset_peak_memory_stats()
    seconds = _interleaved(
        {"gpu_eight": lambda: _update(fused, rows), "gpu_one": lambda: _update(single, alone)}, rounds
    )
    return {
        "ratios": {"train_8_vs_1_gpu": _ratio(seconds, "gpu_eight", "gpu_one")},
        "gpu": {
            "tokens_per_s": len(rows) * 1024 / _median(seconds, "gpu_eight"),
            "peak_gib": torch.cuda.max_memory_allocated() / 2**30,
        },
    }


def measure_memory() -> dict[str, Mapping[str, float]]:
    """Measure the peak of processes that train nano: 64 rows of more members, 512 rows checkpointed or not."""
    cases = {f"{members}_members": (members, 8, False) for members in (1, 8, 64)}
    cases |= {"512_rows": (8, 64, False), "512_rows_checkpointed": (8, 64, True)}
    spawn = multiprocessing.get_context("spawn")
    peaks = {}
    for name, case in cases.items():
        with spawn.Pool(1) as pool:
            peaks[name] = pool.apply(_train_twice, case)
    return {"peak_mib": peaks}


def rollouts(rows: int, *, prompt_tokens: int, new_tokens: int, vocabulary: int, per_prompt: int = 1) -> list[Rollout]:
    """Return so many rollouts of random tokens for each of the eight members, completions of half to full length."""
    rng = np.random.default_rng(0)
    found = []
    for member in SLOTS:
        for place in range(rows):
            if place % per_prompt == 0:
                prompt = tuple(rng.integers(0, vocabulary, prompt_tokens).tolist())
            tokens = tuple(rng.integers(0, vocabulary, rng.integers(new_tokens // 2, new_tokens + 1)).tolist())
            found.append(
                Rollout(
                    member_id=member,
                    batch="solver/deduction",
                    group_id=str(place),
                    prompt_ids=prompt,
                    token_ids=tokens,
                    logprobs=(-1.0,) * len(tokens),
                    reward=0.0,
                )
            )
    return found


def _of_member_0(rollout: Rollout) -> Rollout:
    return replace(rollout, member_id="member_0", group_id=f"{rollout.member_id}/{rollout.group_id}")


def _train_twice(members: int, rows_a_member: int, checkpointing: bool) -> float:
    """Return the peak memory of this process after two updates, in MiB."""
    prepare_torch(1)
    model, lora = load_base("nano").model, LORA["nano"]
    config = TrainerConfig(micro_batch_tokens=1 << 16, gradient_checkpointing=checkpointing)
    trainer = Trainer(_stack(model, lora, members), config)
    rows = rollouts(rows_a_member, prompt_tokens=24, new_tokens=16, vocabulary=model.config.vocab_size)
    if members == 1:
        rows = [_of_member_0(rollout) for rollout in rows]
    for _ in range(2):
        _update(trainer, rows)
    # Not `ru_maxrss`, which a new program inherits from the process that started it.
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def _stack(model: nn.Module, lora: LoraConfig, members: int) -> AdapterStack:
    stack = AdapterStack(model, lora, members)
    for slot in range(members):
        stack.load(slot, fresh_adapter(model, lora, torch.Generator().manual_seed(slot)))
    return stack


def _update(trainer: UpdateRule, rows: Sequence[Rollout]) -> None:
    trainer.update(rows, np.where(np.arange(len(rows)) % 2, 1.0, -1.0), SLOTS, RATES)
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def _interleaved(ways: Mapping[str, Way], rounds: int) -> list[dict[str, float]]:
    """Return the seconds of every way, round by round, after one round that does not count.

    One thread on a CPU is timed by its own clock, so that what else the machine does counts less.
    """
    alone = torch.get_num_threads() == 1 and not torch.cuda.is_available()
    clock = time.process_time if alone else time.perf_counter
    seconds: list[dict[str, float]] = []
    for _ in range(rounds + 1):
        seconds.append({})
        for name, way in ways.items():
            began = clock()
            way()
            seconds[-1][name] = clock() - began
    return seconds[1:]


def _median(seconds: Sequence[Mapping[str, float]], name: str) -> float:
    return statistics.median(one[name] for one in seconds)


def _ratio(seconds: Sequence[Mapping[str, float]], over: str, under: str) -> float:
    return statistics.median(one[over] / one[under] for one in seconds)


if __name__ == "__main__":
    main()
