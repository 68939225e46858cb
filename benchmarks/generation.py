"""What it costs to let eight members speak: mixed in one batch, as one, one after the other, and through PEFT.

    python benchmarks/generation.py [--json] [--rounds N] [--model nano qwen_slice]

The rows are those of one phase of play: every member answers a few prompts several times, answers end at different
lengths. All ways complete the same prompts and draw as many tokens a row, in turn within each round; ratios of the
fewest seconds of any round, of processor time, which other work on the machine disturbs least. transformers' `generate`
reads a prompt once a row and keeps finished rows to the end. Lengths are the same for every member, in another order;
in the `ragged` rows they are drawn apart, so that members run out of rows at different times.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import torch
from peft import LoraConfig as PeftConfig
from peft import get_peft_model, set_peft_model_state_dict
from torch.nn import functional
from transformers import PreTrainedModel, Qwen2Config, Qwen2ForCausalLM, StoppingCriteria

from populora_agents.backends.decoding import Decoder, Row
from populora_agents.backends.sessions import left_padded
from populora_agents.bases import load_base
from populora_agents.config import LoraConfig
from populora_agents.lora import LoraFactors, fresh_adapter
from populora_agents.stack import AdapterStack

ModelName = Literal["nano", "qwen_slice"]
MEMBERS = 8
QWEN_SHAPES: dict[str, Any] = {
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
}
"""Of the blocks of Qwen2.5-7B."""
QWEN_SLICE = Qwen2Config(
    **QWEN_SHAPES, vocab_size=512, num_hidden_layers=4, max_position_embeddings=1024, tie_word_embeddings=True
)
"""Four layers of Qwen2.5-7B's shapes, 0.9 billion parameters, with a small vocabulary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """The rows of one phase, for each member."""

    prompts: int
    attempts: int
    """At each prompt."""
    prompt_tokens: int
    """Mean; prompts differ by up to a quarter."""
    new_tokens: int
    """Longest completion; the shortest has a third."""


PHASES = {
    "nano": Phase(prompts=2, attempts=4, prompt_tokens=64, new_tokens=48),
    "qwen_slice": Phase(prompts=1, attempts=4, prompt_tokens=24, new_tokens=12),
}
LORA = {"nano": LoraConfig(lora_rank=8, alpha=16.0), "qwen_slice": LoraConfig(lora_rank=32, alpha=64.0)}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--rounds", type=int, default=5, help="rounds (default: 5)")
    parser.add_argument("--model", nargs="+", choices=list(PHASES), default=list(PHASES), help="models (default: all)")
    parser.add_argument("--threads", type=int, default=1, help="threads of torch (default: 1)")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    figures = {name: measure_generation(name, arguments.rounds) for name in arguments.model}
    if arguments.json:
        print(json.dumps(figures))
        return
    for name, values in figures.items():
        print(f"{name}, best of {arguments.rounds} rounds, {arguments.threads} threads")
        for key, value in values.items():
            print(f"  {key:32}{value:10.2f}")


def measure_generation(model: ModelName, rounds: int) -> dict[str, float]:
    """Return ratios of processor time, and tokens a second of it.

    Args:
        model: Which base.
        rounds: How often every way is timed, >= 1; once more beforehand, untimed.

    Returns:
        `generate_8_vs_1`: eight members mixed over one member with all rows (1.15 at most is the aim), and
        `generate_8_vs_1_ragged` of the ragged rows;
        `generate_mixed_vs_sequential`: eight runs one after the other over one mixed run (1.5 at least);
        `generate_vs_transformers_peft`: transformers' `generate` with one PEFT adapter over one member (1.5 at least);
        `tokens_per_s_*`: of each way; `weight_bits`: of the base.
    """
    base = _base(model)
    stack = _stack(base, LORA[model])
    rows = _rows(PHASES[model], base.config.vocab_size, ragged=False)
    ragged = _rows(PHASES[model], base.config.vocab_size, ragged=True)
    apart = [[row for row in rows if row.slot == slot] for slot in range(MEMBERS)]
    decoder = Decoder(base, stack, [])
    peft = _peft_model(stack)
    ways: dict[str, Callable[[], object]] = {
        "mixed": lambda: decoder.run(rows),
        "one": lambda: decoder.run(_of_one(rows)),
        "ragged": lambda: decoder.run(ragged),
        "ragged_one": lambda: decoder.run(_of_one(ragged)),
        "sequential": lambda: [decoder.run(part) for part in apart],
        "transformers_peft": lambda: _transformers(peft, rows),
    }
    for way in ways.values():
        way()
    timed = [{name: _timed(way) for name, way in ways.items()} for _ in range(rounds)]
    seconds = {name: min(one[name] for one in timed) for name in ways}
    tokens = {name: sum(row.limit for row in (ragged if "ragged" in name else rows)) for name in ways}

    return {
        "generate_8_vs_1": seconds["mixed"] / seconds["one"],
        "generate_8_vs_1_ragged": seconds["ragged"] / seconds["ragged_one"],
        "generate_mixed_vs_sequential": seconds["sequential"] / seconds["mixed"],
        "generate_vs_transformers_peft": seconds["transformers_peft"] / seconds["one"],
        **{f"tokens_per_s_{name}": tokens[name] / seconds[name] for name in ways},
        "weight_bits": 8.0 * base.dtype.itemsize,
    }


def _timed(way: Callable[[], object]) -> float:
    began = time.process_time()
    way()
    return time.process_time() - began


def _base(model: ModelName) -> PreTrainedModel:
    return load_base("nano").model if model == "nano" else random_qwen(QWEN_SLICE, _faster_dtype())


def random_qwen(config: Qwen2Config, dtype: torch.dtype, device: str = "cpu") -> PreTrainedModel:
    """Return a model of random weights, the same every time."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with torch.random.fork_rng(), torch.device(device):
            torch.manual_seed(0)
            return Qwen2ForCausalLM(config).eval()
    finally:
        torch.set_default_dtype(before)


def _faster_dtype() -> torch.dtype:
    """Return the dtype in which this processor multiplies faster."""
    seconds = {}
    for dtype in (torch.float32, torch.bfloat16):
        x, weight = torch.ones(16, 3584, dtype=dtype), torch.ones(3584, 3584, dtype=dtype)
        seconds[dtype] = min(_timed(partial(functional.linear, x, weight)) for _ in range(5))
    return min(seconds, key=lambda dtype: seconds[dtype])


def _stack(base: PreTrainedModel, config: LoraConfig) -> AdapterStack:
    generator = torch.Generator().manual_seed(1)
    stack = AdapterStack(base, config, MEMBERS)
    for slot in range(MEMBERS):
        adapter = {
            path: LoraFactors(A=pair.A, B=0.01 * torch.randn(pair.B.shape, generator=generator))
            for path, pair in fresh_adapter(base, config, generator).items()
        }
        stack.load(slot, adapter)
    return stack


def _of_one(rows: Sequence[Row]) -> list[Row]:
    """Return the same rows, all of the first member."""
    return [replace(row, slot=0) for row in rows]


def _rows(phase: Phase, vocabulary: int, *, ragged: bool) -> list[Row]:
    """Return the rows of all members, sorted by member and prompt."""
    generator = torch.Generator().manual_seed(2)

    def whole(low: int, high: int) -> int:
        return int(torch.randint(low, high + 1, (), generator=generator))

    rows: list[Row] = []
    spread = phase.prompt_tokens // 4
    count, shortest = phase.prompts * phase.attempts, phase.new_tokens // 3
    lengths = torch.linspace(shortest, phase.new_tokens, count).round().long()
    for slot in range(MEMBERS):
        if ragged:
            lengths = torch.randint(shortest, phase.new_tokens + 1, (count,), generator=generator)
        limits = iter(lengths[torch.randperm(count, generator=generator)].tolist())
        for _ in range(phase.prompts):
            length = phase.prompt_tokens + whole(-spread, spread)
            prompt = tuple(torch.randint(0, vocabulary, (length,), generator=generator).tolist())
            rows += [
                Row(
                    place=len(rows) + attempt,
                    slot=slot,
                    prompt_ids=prompt,
                    limit=next(limits),
                    temperature=1.0,
                    top_p=1.0,
                    seed=len(rows) + attempt,
                )
                for attempt in range(phase.attempts)
            ]
    return rows


def _peft_model(stack: AdapterStack) -> Any:
    """Return a PEFT model with the first member's adapter; it shares the weights of the base."""
    state, fields = stack.to_peft(0)
    model: Any = get_peft_model(stack.bare_model(), PeftConfig(**fields))
    set_peft_model_state_dict(model, state)
    model.generation_config.eos_token_id = None
    return model.eval()


def _transformers(model: Any, rows: Sequence[Row]) -> None:
    ids, mask = left_padded([row.prompt_ids for row in rows])
    limits = torch.tensor([row.limit for row in rows])
    model.generate(
        input_ids=ids,
        attention_mask=mask,
        do_sample=True,
        temperature=1.0,
        top_k=0,
        top_p=1.0,
        max_new_tokens=int(limits.max()),
        stopping_criteria=[_Limits(ids.shape[1] + limits)],
        pad_token_id=0,
    )


class _Limits(StoppingCriteria):
    """Ends every row at its own length."""

    def __init__(self, lengths: torch.Tensor) -> None:
        self._lengths = lengths

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        """Return which rows are done."""
        del scores, kwargs
        return input_ids.shape[1] >= self._lengths


if __name__ == "__main__":
    main()
