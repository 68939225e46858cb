"""Tiny random bases and adapters, so that the tests of this package need no weights."""

from __future__ import annotations

from typing import TypeVar

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from populora_agents.config import LoraConfig
from populora_agents.lora import Adapter, LoraFactors, fresh_adapter

Model = TypeVar("Model", bound=torch.nn.Module)

END, PAD = "<|end|>", "<|pad|>"

CHAT_TEMPLATE = (
    "{% for message in messages %}<|start|>{{ message['role'] }}\n{{ message['content'] }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
)


def make_tokenizer(*, chat: bool = False, split: bool = True) -> PreTrainedTokenizerFast:
    """Return a byte-level tokenizer with control tokens of its own."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    raw = Tokenizer(models.BPE(vocab={mark: place for place, mark in enumerate(alphabet)}, merges=[]))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    raw.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw,
        eos_token=END,
        pad_token=PAD,
        additional_special_tokens=["<|start|>"],
        clean_up_tokenization_spaces=False,
        split_special_tokens=split,
    )
    if chat:
        tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


def make_model(
    *, layers: int = 2, seed: int = 0, dtype: torch.dtype = torch.float32, spread: float = 0.1
) -> LlamaForCausalLM:
    """Return a random Llama; same seed, same weights."""
    config = LlamaConfig(
        vocab_size=259,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=256,
        pad_token_id=257,
    )
    model = LlamaForCausalLM(config)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" not in name:
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * spread)
    return exact(model) if dtype == torch.float64 else model.to(dtype).eval()


def exact(model: Model) -> Model:
    """Return `model` in float64 throughout: transformers' norms compute in float32 whatever the dtype."""
    for path, module in list(model.named_modules()):
        if type(module).__name__.endswith("RMSNorm"):
            norm = torch.nn.RMSNorm(module.weight.shape[0], eps=module.variance_epsilon)
            norm.weight = module.weight
            model.set_submodule(path, norm)
    return model.double().eval()


def random_adapter(
    model: torch.nn.Module, config: LoraConfig, seed: int, *, dtype: torch.dtype = torch.float32
) -> Adapter:
    """Return an adapter whose B is not zero."""
    generator = torch.Generator().manual_seed(seed)
    return {
        path: LoraFactors(A=pair.A.to(dtype), B=(0.1 * torch.randn(pair.B.shape, generator=generator)).to(dtype))
        for path, pair in fresh_adapter(model, config, generator).items()
    }
