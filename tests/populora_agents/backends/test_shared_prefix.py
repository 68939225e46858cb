"""Shared prompts against plain attention over each row's whole text."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from populora_agents.backends.shared_prefix import SharedPrefix

HEADS, SIZE = 2, 4


class Plain:
    """Keeps every row's own keys and values, prompt and all."""

    def __init__(self, keys: Tensor, values: Tensor, mask: Tensor, of_row: list[int]) -> None:
        """Copy each row's prompt without its padding."""
        known = [mask[prompt] == 1 for prompt in of_row]
        self.keys = [keys[prompt][:, seen] for prompt, seen in zip(of_row, known, strict=True)]
        self.values = [values[prompt][:, seen] for prompt, seen in zip(of_row, known, strict=True)]

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Return each row's attention."""
        out = []
        for row in range(len(query)):
            self.keys[row] = torch.cat([self.keys[row], key[row][:, None]], dim=1)
            self.values[row] = torch.cat([self.values[row], value[row][:, None]], dim=1)
            out.append(functional.scaled_dot_product_attention(query[row], self.keys[row], self.values[row], scale=1.0))
        return torch.stack(out).flatten(1)

    def keep(self, rows: np.ndarray) -> None:
        """Keep rows."""
        self.keys = [self.keys[row] for row in rows]
        self.values = [self.values[row] for row in rows]


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("of_row", [[0, 0, 1, 1, 2, 2], [0, 0, 0, 1, 2, 2], [0, 1, 2], [0]], ids=str)
def test_it_equals_plain_attention_while_rows_leave(of_row: list[int], padded: bool) -> None:
    generator = torch.Generator().manual_seed(len(of_row))

    def random(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    prompts = max(of_row) + 1
    keys, values = random(prompts, HEADS, 5, SIZE), random(prompts, HEADS, 5, SIZE)
    mask = torch.ones(prompts, 5, dtype=torch.int64)
    if padded:
        mask[0, :3] = 0
        keys[0, :, :3] = 1e6
    shared = SharedPrefix([keys], [values], mask, np.array(of_row))
    plain = Plain(keys, values, mask, of_row)
    rows = len(of_row)
    for turn in range(70):
        query, key, value = random(rows, HEADS, 3, SIZE), random(rows, HEADS, SIZE), random(rows, HEADS, SIZE)
        torch.testing.assert_close(shared.attend(0, query, key, value), plain.attend(query, key, value))
        if turn in (2, 66) and rows > 1:
            kept = np.arange(rows)[1:]
            shared.keep(kept)
            plain.keep(kept)
            rows -= 1
