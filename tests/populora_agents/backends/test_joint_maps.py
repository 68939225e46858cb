"""Maps of one input, by hand, with some, all and none of them adapted."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from populora_agents.backends.joint_maps import JointMaps, active_deltas
from populora_agents.config import LoraConfig
from populora_agents.lora import LoraFactors
from populora_agents.routing import plan_rows
from populora_agents.stack import AdapterStack


class Two(nn.Module):
    """Two maps of one input."""

    def __init__(self, dtype: torch.dtype = torch.float32) -> None:
        """Fill them with twos and threes."""
        super().__init__()
        self.left, self.right = nn.Linear(2, 2, bias=False, dtype=dtype), nn.Linear(2, 1, dtype=dtype)
        for parameter, value in ((self.left.weight, 2.0), (self.right.weight, 3.0), (self.right.bias, 0.5)):
            nn.init.constant_(parameter, value)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_by_hand(dtype: torch.dtype) -> None:
    model = Two(dtype)
    config = LoraConfig(lora_rank=1, alpha=4.0, targets=("right",))
    stack = AdapterStack(model, config, 3)
    for slot in range(3):
        stack.load(slot, {"right": LoraFactors(A=torch.full((1, 2), float(slot)), B=torch.ones(1, 1))})
    slots = [-1, 1, 2, 2]
    plan = plan_rows(slots, 3)
    assert plan is not None
    linears = (model.left, model.right)
    left, right = JointMaps(linears, active_deltas(stack, plan))(torch.ones(4, 2, dtype=dtype), plan)
    assert left.tolist() == [[4.0, 4.0]] * 4
    # 3 + 3 + 0.5, and 4 times the sum of the slot's two ones, twos.
    assert right.flatten().tolist() == [6.5, 14.5, 22.5, 22.5]
    bare = JointMaps(linears, {})(torch.ones(4, 2, dtype=dtype), None)
    assert bare[1].flatten().tolist() == [6.5] * 4
