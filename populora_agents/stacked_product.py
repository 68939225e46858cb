"""One frozen linear map with the deltas of several slots, forward and backward, in as few passes as it takes.

Owns the arithmetic of `stack.StackedLinear` in training; autograd would come to the same gradients through twice the
passes over activations, and keep more of them. Owns no routing and no factors.

Symbols: S active slots, n rows a slot after padding, T tokens a row, R rows, r rank.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from populora_agents.routing import RoutingPlan


def stacked_linear(
    x: Tensor,
    source: Tensor,
    linear: tuple[Tensor, Tensor | None],
    factors: tuple[Tensor, Tensor],
    scaling: float,
    plan: RoutingPlan,
) -> Tensor:
    """Return `x W^T + bias + scaling * x A_s^T B_s^T`, s the slot of the row; differentiable in `x`, A and B.

    Args:
        x: float [R, ..., d_in].
        source: [S * n, ..., d_in]: the rows of `x` at their padded places, without gradient; `x` itself where the plan
            gathers nothing.
        linear: W [d_out, d_in] and bias [d_out]; frozen.
        factors: A [S, r, d_in] and B [S, d_out, r] of the active slots, of the dtype of `x`.
        scaling: Of the deltas.
        plan: Of the rows.

    Returns:
        float [R, ..., d_out].
    """
    output: Tensor = _StackedLinear.apply(x, source, *linear, *factors, scaling, plan)  # type: ignore[no-untyped-call]
    return output


class _StackedLinear(torch.autograd.Function):
    """With h = scaling * A x^T and g the gradient of the output: dB^T = h g, dh = scaling * B^T g^T, dA = dh x.

    dx = g W + dh^T A. The r rows stand first in every product: CPUs' matrix kernels want the short side there (two to
    four times as fast as with r columns).
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        source: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        down: Tensor,
        up: Tensor,
        scaling: float,
        plan: RoutingPlan,
    ) -> Tensor:
        output = functional.linear(x, weight, bias)
        hidden = torch.bmm(down, source.reshape(plan.count, -1, x.shape[-1]).mT).mul_(scaling)
        ctx.save_for_backward(source, weight, down, up, hidden)
        ctx.scaling, ctx.plan = scaling, plan
        return add_padded(output, hidden, up.mT, plan)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        source, weight, down, up, hidden = ctx.saved_tensors
        plan: RoutingPlan = ctx.plan
        gradient = gradients[0]
        padded = _pad(gradient, plan).reshape(plan.count, -1, gradient.shape[-1])
        to_up = torch.bmm(hidden, padded).mT
        to_hidden = torch.bmm(up.mT, padded.mT).mul_(ctx.scaling)
        to_down = torch.bmm(to_hidden, source.reshape(plan.count, -1, source.shape[-1]))
        to_x = None
        if ctx.needs_input_grad[0]:
            to_x = add_padded(gradient.matmul(weight), to_hidden, down, plan)
        return to_x, None, None, None, to_down, to_up, None, None


def _pad(rows: Tensor, plan: RoutingPlan) -> Tensor:
    """Bring rows [R, ...] to their padded places [S * n, ...]; the places between hold 0."""
    if plan.places is None:
        return rows
    routed = rows if plan.routed is None else rows.index_select(0, plan.routed)
    return routed.new_zeros(plan.count * plan.width, *rows.shape[1:]).index_copy_(0, plan.places, routed)


def add_padded(rows: Tensor, hidden: Tensor, right: Tensor, plan: RoutingPlan, alpha: float = 1.0) -> Tensor:
    """Add `alpha * hidden^T @ right`, [S, n * T, d] at padded places, in place to rows [R, ..., d]."""
    if plan.places is None:
        flat = rows.view(plan.count, -1, rows.shape[-1])
        flat.baddbmm_(hidden.mT, right, alpha=alpha)
        return rows
    delta = torch.bmm(hidden.mT, right).view(-1, *rows.shape[1:]).index_select(0, plan.places)
    if plan.routed is None:
        return rows.add_(delta, alpha=alpha)
    return rows.index_add_(0, plan.routed, delta, alpha=alpha)
