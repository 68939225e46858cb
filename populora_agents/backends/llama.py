"""One token further for Llama, Qwen2 and Qwen3, without transformers' forward.

A forward of one token a row is so short that masks, hooks and module calls cost as much as the products. This session
reads the model's own weights (no copy), lets rows share the keys and values of their prompt (`shared_prefix`), and
multiplies all deltas that read the same input at once. Prompts go through transformers' forward. Which models it reads
is decided by their class and config; all others take `sessions.TransformersSession`.

Symbols: R rows, S active slots, n rows a slot after padding, H key heads, g query heads a key head, D size of a head.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from transformers import DynamicCache, LlamaForCausalLM, PreTrainedModel, Qwen2ForCausalLM, Qwen3ForCausalLM

from populora_agents.backends.joint_maps import JointMaps, active_deltas
from populora_agents.backends.sessions import Prompts, arguments, left_padded
from populora_agents.backends.shared_prefix import SharedPrefix
from populora_agents.batching import positions
from populora_agents.routing import plan_rows
from populora_agents.scoring import has_full_attention
from populora_agents.stack import AdapterStack, StackedLinear

_CLASSES = (LlamaForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM)
_FIXED_ROTATIONS = ("default", "linear", "llama3", "yarn")
"""Kinds of rotary embedding that do not change with the length of the text."""
_PREFILL_TOKENS = 8192
"""Most tokens of prompts in one forward, padding included; bounds activations."""


def is_readable(model: PreTrainedModel) -> bool:
    """Return whether `LlamaSession` computes what this model's own forward would."""
    if type(model) not in _CLASSES:
        return False
    config: Any = model.config
    inner: Any = model.model
    return (
        config.hidden_act == "silu"
        and has_full_attention(config)
        and inner.rotary_emb.rope_type in _FIXED_ROTATIONS
        and all(type(module) in (nn.Linear, StackedLinear) for module in _linears(model))
        and not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    )


def _linears(model: PreTrainedModel) -> list[nn.Module]:
    names = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj", "lm_head")
    return [module for path, module in model.named_modules() if path.rpartition(".")[2] in names]


class LlamaSession:
    """A batch on its way through a model that `is_readable`."""

    def __init__(self, model: PreTrainedModel, stack: AdapterStack | None, prompts: Prompts) -> None:
        """Read each different prompt once."""
        self._model: Any = model
        self._stack = stack
        self._slots = prompts.slots[prompts.of_row]
        self._active: frozenset[int] | None = None
        logits, self._attention = _read(model, stack, prompts)
        self.first = logits[torch.from_numpy(prompts.of_row).to(logits.device)]
        lengths = np.array([len(ids) for ids in prompts.ids])
        self._rotations = _rotations(model, int(lengths.max()) + prompts.longest)
        self._positions = torch.from_numpy(lengths[prompts.of_row]).to(model.device)
        self._route()

    @torch.inference_mode()
    def advance(self, tokens: Tensor) -> Tensor:
        """See `Session`."""
        inner = self._model.model
        rotation = [table[self._positions][:, None] for table in self._rotations]
        x = inner.embed_tokens(tokens)
        for number, (layer, maps) in enumerate(zip(inner.layers, self._layers, strict=True)):
            x = x + self._attend(number, layer, maps, _normal(x, layer.input_layernorm), rotation)
            gate, up = maps.enter(_normal(x, layer.post_attention_layernorm), self._plan)
            (out,) = maps.leave(functional.silu(gate, inplace=True).mul_(up), self._plan)
            x = x + out
        self._positions = self._positions + 1
        (logits,) = self._head(_normal(x, inner.norm), self._plan)
        return logits

    def keep(self, rows: NDArray[np.int64]) -> None:
        """See `Session`."""
        self._attention.keep(rows)
        self._positions = self._positions[torch.from_numpy(rows).to(self._positions.device)]
        self._slots = self._slots[rows]
        self._route()

    def _attend(self, number: int, layer: Any, maps: _Layer, x: Tensor, rotation: Sequence[Tensor]) -> Tensor:
        block = layer.self_attn
        query, key, value = (one.view(len(x), -1, block.head_dim) for one in maps.read(x, self._plan))
        if isinstance(self._model, Qwen3ForCausalLM):
            query, key = _normal(query, block.q_norm), _normal(key, block.k_norm)
        heads = query.shape[1]
        turned = _rotate(torch.cat([query, key], dim=1), *rotation)
        query = (turned[:, :heads] * block.scaling).view(len(x), -1, block.num_key_value_groups, block.head_dim)
        (out,) = maps.write(self._attention.attend(number, query, turned[:, heads:], value), self._plan)
        return out

    def _route(self) -> None:
        """Bring together what the present rows need."""
        self._plan = None if self._stack is None else plan_rows(self._slots, self._stack.slots, self._stack.device)
        active = frozenset(self._slots.tolist())
        if active == self._active:
            return
        self._active = active
        deltas = {} if self._stack is None or self._plan is None else active_deltas(self._stack, self._plan)

        def together(*linears: nn.Linear) -> JointMaps:
            return JointMaps(linears, deltas)

        self._layers = [
            _Layer(
                read=together(layer.self_attn.q_proj, layer.self_attn.k_proj, layer.self_attn.v_proj),
                write=together(layer.self_attn.o_proj),
                enter=together(layer.mlp.gate_proj, layer.mlp.up_proj),
                leave=together(layer.mlp.down_proj),
            )
            for layer in self._model.model.layers
        ]
        self._head = together(self._model.lm_head)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layer:
    """The maps of one block, in the order of their use."""

    read: JointMaps
    """To queries, keys and values."""
    write: JointMaps
    enter: JointMaps
    """To gate and up."""
    leave: JointMaps


def _read(model: PreTrainedModel, stack: AdapterStack | None, prompts: Prompts) -> tuple[Tensor, SharedPrefix]:
    """Return the logits [P, V] after every prompt, and what is remembered of them."""
    config: Any = model.config
    _, mask = left_padded(prompts.ids, model.device)
    inner: Any = model.model
    shape = (len(mask), config.num_key_value_heads, mask.shape[1], inner.layers[0].self_attn.head_dim)
    # Zeros: what is padded is masked, and must not hold NaN.
    keys, values = ([inner.embed_tokens.weight.new_zeros(shape) for _ in inner.layers] for _ in range(2))
    logits = []
    chunks = _chunks(prompts.ids)
    for places in chunks:
        ids, known = left_padded([prompts.ids[place] for place in places], model.device)
        cache = DynamicCache(config=config)
        with nullcontext() if stack is None else stack.route(prompts.slots[places]):
            hidden = inner(**arguments(inner, (ids, known, positions(known)), cache)).last_hidden_state[:, -1]
            # Two dimensions: a batch of single columns would have torch copy the head's weights once a row.
            logits.append(model.lm_head(hidden))
        index = torch.tensor(places, device=model.device)
        filled: Any = cache.layers
        for layer, key, value in zip(filled, keys, values, strict=True):
            key[index, :, -ids.shape[1] :] = layer.keys
            value[index, :, -ids.shape[1] :] = layer.values
    back = torch.from_numpy(np.argsort(np.concatenate(chunks))).to(model.device)
    return torch.cat(logits)[back], SharedPrefix(keys, values, mask, prompts.of_row)


def _chunks(prompts: Sequence[Sequence[int]]) -> list[list[int]]:
    """Bring prompts of like lengths together, in chunks that fit the budget when padded; a longer one goes alone.

    Returns:
        The places of each chunk in their order, which is that of the slots.
    """
    chunks: list[list[int]] = []
    for place in sorted(range(len(prompts)), key=lambda place: len(prompts[place])):
        if not chunks or len(prompts[place]) * (len(chunks[-1]) + 1) > _PREFILL_TOKENS:
            chunks.append([])
        chunks[-1].append(place)
    return [sorted(chunk) for chunk in chunks]


def _rotations(model: Any, length: int) -> tuple[Tensor, Tensor]:
    """Return cosines and signed sines [T, D] of all positions, as the model itself computes them."""
    places = torch.arange(length, device=model.device)[None]
    cosine, sine = model.model.rotary_emb(model.model.embed_tokens.weight[:1], places)
    half = sine.shape[-1] // 2
    return cosine[0], torch.cat([-sine[0, :, :half], sine[0, :, half:]], dim=-1)


def _rotate(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Turn [R, heads, D] by its position; the halves of a head are the two coordinates of each plane."""
    half = x.shape[-1] // 2
    return (x * cosine).addcmul_(torch.cat([x[..., half:], x[..., :half]], dim=-1), sine)


def _normal(x: Tensor, norm: Any) -> Tensor:
    return functional.rms_norm(x, (x.shape[-1],), norm.weight, norm.variance_epsilon)
