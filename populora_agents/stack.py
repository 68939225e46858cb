"""`AdapterStack`: the adapters of all members side by side over one frozen base; one forward serves them all.

Owns the stacked factors and the forward through them. Owns no routing plan (`routing`), no learning (`optimizer`,
`trainer`), no text, no files.

Symbols: M slots, S of them active in a forward, R rows, n rows an active slot after padding, T tokens a row, r rank.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn import functional

from populora_agents.config import LoraConfig
from populora_agents.lora import Adapter, LoraFactors, target_modules
from populora_agents.routing import RoutingPlan, RowSlots, Switch, plan_rows

# The factors are strided views on purpose; autograd adds into them in place all the same, and says so once.
warnings.filterwarnings(
    "ignore", message="grad and param do not obey the gradient layout contract", category=UserWarning
)


class StackedLinear(nn.Linear):
    """A frozen linear map with M deltas: `x W^T + bias + scaling * x A_m^T B_m^T`, m the slot of the row.

    It shares weight and bias with the module it stands for, so that the model's state dict stays as it was. The
    factors are no parameters of the model: they belong to the stack.
    """

    def __init__(self, base: nn.Linear, factors: tuple[nn.Parameter, nn.Parameter], scaling: float, switch: Switch):
        """Take the place of `base`."""
        nn.Module.__init__(self)
        self.in_features, self.out_features = base.in_features, base.out_features
        self.weight, self.bias = base.weight, base.bias
        self.factors = factors
        self._scaling = scaling
        self._switch = switch

    def forward(self, input: Tensor) -> Tensor:
        """Map [R, ..., d_in] to [R, ..., d_out]."""
        output = functional.linear(input, self.weight, self.bias)
        plan = self._switch.plan
        if plan is None:
            return output
        if input.shape[0] != plan.rows:
            raise ValueError(f"the route names {plan.rows} rows, the forward has {input.shape[0]}")
        down, up = (_select(factor, plan.slots) for factor in self.factors)
        source = input if plan.gather is None else self._switch.gather(input, plan.gather)
        hidden = torch.bmm(source.reshape(plan.count, -1, self.in_features).to(down.dtype), down.mT)
        if plan.gather is None and output.dtype == up.dtype:
            flat = output.view(plan.count, -1, self.out_features)
            if torch.is_grad_enabled():
                return torch.baddbmm(flat, hidden, up.mT, alpha=self._scaling).view(output.shape)
            flat.baddbmm_(hidden, up.mT, alpha=self._scaling)
            return output
        delta = (torch.bmm(hidden, up.mT) * self._scaling).to(output.dtype)
        return _add_rows(output, delta.view(-1, *output.shape[1:]), plan)


def _select(factor: Tensor, slots: slice | Tensor) -> Tensor:
    """Return the factors of the active slots, [M, ...] to [S, ...]."""
    return factor[slots] if isinstance(slots, slice) else factor.index_select(0, slots)


def _add_rows(output: Tensor, delta: Tensor, plan: RoutingPlan) -> Tensor:
    """Add the padded `delta` [S * n, ..., d_out] to the rows of `output` it belongs to."""
    if plan.places is None:
        return output + delta
    delta = delta.index_select(0, plan.places)
    return output + delta if plan.routed is None else output.index_add(0, plan.routed, delta)


class AdapterStack:
    """M adapters over one frozen model, whose target modules it replaces in place.

    All factors lie in one matrix [M, P] (`values`), their gradients in another (`gradients`), so that an optimiser
    works on whole members at once. Factors on the device that the model is on when the stack is made; do not move
    the model afterwards. Outside `route` the model is the bare base. One thread at a time.
    """

    def __init__(self, model: nn.Module, config: LoraConfig, slots: int, *, dtype: torch.dtype = torch.float32):
        """Freeze `model` and stack `slots` empty adapters (all zero, so that they change nothing) on it.

        Args:
            model: Any module with nn.Linear targets.
            config: Rank, alpha, targets: the same for all members.
            slots: M, >= 1.
            dtype: Of the factors.

        Raises:
            ValueError: A target is missing or cannot be adapted, or the model carries a stack already.
        """
        if slots < 1:
            raise ValueError(f"`slots` must be at least 1, got {slots!r}")
        modules = target_modules(model, config.targets)
        for path, module in modules.items():
            if type(module) is not nn.Linear:
                raise ValueError(f"{path!r} is a {type(module).__name__}; only a plain nn.Linear can be stacked")
        self.model = model.requires_grad_(False)
        self.config = config
        self.slots = slots
        self.device = next(iter(modules.values())).weight.device
        r = config.lora_rank
        size = sum(r * (module.in_features + module.out_features) for module in modules.values())
        self.values = torch.zeros(slots, size, dtype=dtype, device=self.device)
        """float [M, P]: row m holds all factors of slot m."""
        self.gradients = torch.zeros_like(self.values)
        """float [M, P]: summed by every backward; the owner of the update zeroes it."""
        self._switch = Switch()
        self._layers: dict[str, StackedLinear] = {}
        offset = 0
        for path, module in modules.items():
            down, offset = self._parameter(offset, r, module.in_features)
            up, offset = self._parameter(offset, module.out_features, r)
            self._layers[path] = StackedLinear(module, (down, up), config.scaling, self._switch)
            model.set_submodule(path, self._layers[path])

    def _parameter(self, offset: int, rows: int, columns: int) -> tuple[nn.Parameter, int]:
        """Return the parameter [M, rows, columns] at `offset` of every row of `values`, and where the next begins."""
        end = offset + rows * columns
        shape = (self.slots, rows, columns)
        parameter = nn.Parameter(self.values[:, offset:end].view(shape))
        parameter.grad = self.gradients[:, offset:end].view(shape)
        return parameter, end

    def parameters(self) -> Iterator[nn.Parameter]:
        """Yield A and B of every adapted module, in the model's order; each a view of `values`."""
        for layer in self._layers.values():
            yield from layer.factors

    def modules(self) -> tuple[str, ...]:
        """Return the paths of the adapted modules, in the model's order."""
        return tuple(self._layers)

    @contextmanager
    def route(self, row_slots: RowSlots) -> Iterator[None]:
        """Serve row i of every forward (and backward) inside by slot `row_slots[i]`, None or -1 by the bare base."""
        before = self._switch.plan
        self._switch.set(plan_rows(row_slots, self.slots, self.device))
        try:
            yield
        finally:
            self._switch.set(before)

    def load(self, slot: int, adapter: Adapter) -> None:
        """Copy `adapter` into `slot`.

        Raises:
            ValueError: The slot, a module or a shape does not fit; nothing is copied then.
        """
        self._check_slot(slot)
        if set(adapter) != set(self._layers):
            odd = sorted(set(adapter) ^ set(self._layers))
            raise ValueError(f"`adapter` must hold exactly the stack's modules, they differ in {odd[:4]!r}")
        for path, layer in self._layers.items():
            for stacked, factor in zip(layer.factors, (adapter[path].A, adapter[path].B), strict=True):
                if factor.shape != stacked.shape[1:]:
                    raise ValueError(f"{path!r} needs {list(stacked.shape[1:])!r}, got {list(factor.shape)!r}")
        with torch.no_grad():
            for path, layer in self._layers.items():
                for stacked, factor in zip(layer.factors, (adapter[path].A, adapter[path].B), strict=True):
                    stacked[slot].copy_(factor)

    def adapter(self, slot: int) -> Adapter:
        """Return a copy of what `slot` holds, on the CPU."""
        self._check_slot(slot)
        return {
            path: LoraFactors(A=_copy(layer.factors[0][slot]), B=_copy(layer.factors[1][slot]))
            for path, layer in self._layers.items()
        }

    def _check_slot(self, slot: int) -> None:
        if not 0 <= slot < self.slots:
            raise ValueError(f"`slot` must lie in 0..{self.slots - 1}, got {slot!r}")


def _copy(factor: Tensor) -> Tensor:
    return factor.detach().to("cpu", copy=True).contiguous()
