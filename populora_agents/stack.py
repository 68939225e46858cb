"""`AdapterStack`: the adapters of all members side by side over one frozen base; one forward serves them all.

Owns the stacked factors and the forward through them. Owns no routing plan (`routing`), no learning (`optimizer`,
`trainer`), no text, no files.

Symbols: M slots, S of them active in a forward, R rows, n rows an active slot after padding, T tokens a row, r rank.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from populora_agents.config import LoraConfig
from populora_agents.grouped import grouped_product, has_fast_kernel, is_aligned
from populora_agents.lora import Adapter, LoraFactors, peft_form, target_modules
from populora_agents.routing import RowSlots, Switch, plan_rows
from populora_agents.stacked_product import stacked_linear

ProductName = Literal["auto", "batched", "grouped"]

# The factors are strided views on purpose; autograd adds into them in place all the same, and says so once.
warnings.filterwarnings(
    "ignore", message="grad and param do not obey the gradient layout contract", category=UserWarning
)


class StackedLinear(nn.Linear):
    """A frozen linear map with M deltas: `x W^T + bias + scaling * x A_m^T B_m^T`, m the slot of the row.

    It shares weight and bias with the module it stands for, so that the model's state dict stays as it was. The
    factors are no parameters of the model: they belong to the stack. They are brought to the dtype of the input, which
    costs little beside it; their gradients come back in their own.
    """

    def __init__(self, base: nn.Linear, factors: tuple[nn.Parameter, nn.Parameter], scaling: float, switch: Switch):
        """Take the place of `base`."""
        nn.Module.__init__(self)
        self.in_features, self.out_features = base.in_features, base.out_features
        self.weight, self.bias = base.weight, base.bias
        self.factors = factors
        self._scaling = scaling
        self._switch = switch
        self.train(base.training)

    def plain(self) -> nn.Linear:
        """Return the map without deltas, of the same weight and bias."""
        linear = nn.Linear(self.in_features, self.out_features, bias=self.bias is not None, device="meta")
        linear.weight, linear.bias = self.weight, self.bias
        return linear.train(self.training)

    def forward(self, input: Tensor) -> Tensor:
        """Map [R, ..., d_in] to [R, ..., d_out]."""
        plan = self._switch.plan
        if plan is None:
            return functional.linear(input, self.weight, self.bias)
        if input.shape[0] != plan.rows:
            raise ValueError(f"the route names {plan.rows} rows, the forward has {input.shape[0]}")
        down, up = (plan.select(factor).to(input.dtype) for factor in self.factors)
        if self._switch.grouped and plan.ends is not None and self._fits_groups(input):
            output = functional.linear(input, self.weight, self.bias)
            return output + self._grouped(input, down, up, plan.ends).view(output.shape)
        with torch.no_grad():
            source = input if plan.gather is None else self._switch.gather(input, plan.gather)
        return stacked_linear(input, source, (self.weight, self.bias), (down, up), self._scaling, plan)

    def _grouped(self, input: Tensor, down: Tensor, up: Tensor, ends: Tensor) -> Tensor:
        """Return the delta [N, d_out] of rows that are sorted by slot, N tokens in all."""
        tokens = input.reshape(-1, self.in_features)
        ends = self._switch.token_ends(ends, tokens.shape[0] // input.shape[0])
        hidden = grouped_product(tokens, down.mT, ends)
        return grouped_product(hidden * self._scaling, up.mT, ends)

    def _fits_groups(self, input: Tensor) -> bool:
        return is_aligned(input.dtype, self.in_features, self.out_features, self.factors[0].shape[1])


class AdapterStack:
    """M adapters over one frozen model, whose target modules it replaces in place.

    All factors lie in one matrix [M, P] (`values`), their gradients in another (`gradients`), so that an optimiser
    works on whole members at once. Factors on the device that the model is on when the stack is made; do not move
    the model afterwards. Outside `route` the model is the bare base. One thread at a time.
    """

    def __init__(
        self,
        model: nn.Module,
        config: LoraConfig,
        slots: int,
        *,
        dtype: torch.dtype = torch.float32,
        product: ProductName = "auto",
    ):
        """Freeze `model` and stack `slots` empty adapters (all zero, so that they change nothing) on it.

        Args:
            model: Any module with nn.Linear targets.
            config: Rank, alpha, targets: the same for all members.
            slots: M, >= 1.
            dtype: Of the factors; products are in the dtype of the model.
            product: How rows meet the factors of their slot: padded batches, grouped products, or what is faster here.

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
        grouped = product == "grouped" or (product == "auto" and has_fast_kernel(self.device))
        self._switch = Switch(grouped=grouped)
        size = sum(config.lora_rank * (module.in_features + module.out_features) for module in modules.values())
        self.values = torch.zeros(slots, size, dtype=dtype, device=self.device)
        """float [M, P]: row m holds all factors of slot m."""
        self.gradients = torch.zeros_like(self.values)
        """float [M, P]: summed by every backward; the owner of the update zeroes it."""
        self._layers: dict[str, StackedLinear] = {}
        for (path, module), factors in zip(modules.items(), self._factors(modules.values()), strict=True):
            self._layers[path] = StackedLinear(module, factors, config.scaling, self._switch)
            model.set_submodule(path, self._layers[path])

    def _factors(self, modules: Iterable[nn.Linear]) -> Iterator[tuple[nn.Parameter, nn.Parameter]]:
        """Yield A and B of each module as views of `values`, in the order in which they lie there."""
        r, offset = self.config.lora_rank, 0
        for module in modules:
            down, offset = self._parameter(offset, r, module.in_features)
            up, offset = self._parameter(offset, module.out_features, r)
            yield down, up

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
        self.check_slot(slot)
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

    def reset(self, slot: int) -> None:
        """Empty a slot: it changes nothing then, and has no gradient either, until an adapter is loaded into it."""
        self.check_slot(slot)
        self.values[slot].zero_()
        self.gradients[slot].zero_()

    def grow(self, slots: int) -> None:
        """Add empty slots up to `slots` in all; what the others hold is kept, its optimiser state too.

        Raises:
            ValueError: There are more already.
        """
        if slots < self.slots:
            raise ValueError(f"`slots` must be at least {self.slots}, the slots there are, got {slots!r}")
        more = self.values.new_zeros(slots - self.slots, self.values.shape[1])
        self.values, self.gradients = torch.cat([self.values, more]), torch.cat([self.gradients, more])
        self.slots = slots
        for layer, factors in zip(self._layers.values(), self._factors(self._layers.values()), strict=True):
            layer.factors = factors

    def adapter(self, slot: int) -> Adapter:
        """Return a copy of what `slot` holds, on the CPU."""
        self.check_slot(slot)
        return {
            path: LoraFactors(A=_copy(layer.factors[0][slot]), B=_copy(layer.factors[1][slot]))
            for path, layer in self._layers.items()
        }

    def to_peft(self, slot: int, base_name: str = "") -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return what `slot` holds in PEFT's form: a state dict on the CPU, and the fields of a `peft.LoraConfig`.

        `peft.set_peft_model_state_dict(peft.get_peft_model(model, peft.LoraConfig(**fields)), state)` makes the same
        member on `bare_model()`.
        """
        return peft_form(self.adapter(slot), self.config, base_name)

    def bare_model(self) -> nn.Module:
        """Return the model as it was before the stack: modules of its own, the same weights, no copy of them."""
        shared: dict[int, Any] = {id(part): part for part in (*self.model.parameters(), *self.model.buffers())}
        return copy.deepcopy(self.model, shared | {id(layer): layer.plain() for layer in self._layers.values()})

    def check_slot(self, slot: int) -> None:
        """Raise ValueError where there is no such slot."""
        if not 0 <= slot < self.slots:
            raise ValueError(f"`slot` must lie in 0..{self.slots - 1}, got {slot!r}")


def _copy(factor: Tensor) -> Tensor:
    return factor.detach().to("cpu", copy=True).contiguous()
