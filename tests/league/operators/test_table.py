"""The one door to the operators."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest
import torch

from league.operators import OPERATORS, apply, usable
from populora_agents.lora import Adapter, LoraFactors

Make = Callable[..., Adapter]
NAMES = sorted(OPERATORS)


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def parents_of(name: str, make: Make, **options: object) -> list[Adapter]:
    return [make(seed, **options) for seed in range(OPERATORS[name].arity)]


def same_bits(one: Adapter, other: Adapter) -> bool:
    return list(one) == list(other) and all(
        torch.equal(one[m].A, other[m].A) and torch.equal(one[m].B, other[m].B) for m in one
    )


def test_the_papers_operators_the_controls_and_the_extras_are_there() -> None:
    by_kind = {(x.kind, arity): set[str]() for x in OPERATORS.values() for arity in (1, 2)}
    for operator in OPERATORS.values():
        by_kind[operator.kind, operator.arity].add(operator.name)
    assert by_kind["paper", 1] == {"svd_perturb", "layer_gaussian", "component_mask", "full_gaussian"}
    assert by_kind["paper", 2] == {"dare", "layer_select", "svd_mix", "extrapolate"}
    assert by_kind["control", 1] | by_kind["control", 2] == {"copy_parent", "linear_0_5"}
    assert by_kind["extra", 2] == {"ties", "slerp"}
    assert {name for name, used in usable([]).items() if used} == by_kind["paper", 1] | by_kind["paper", 2]


@pytest.mark.parametrize("name", NAMES)
def test_the_table_says_what_the_function_takes(name: str) -> None:
    operator = OPERATORS[name]
    assert operator.name == name
    parameters = inspect.signature(operator.function).parameters.values()
    assert sum(x.kind is x.POSITIONAL_OR_KEYWORD for x in parameters) == operator.arity
    defaults = {x.name: x.default for x in parameters if x.kind is x.KEYWORD_ONLY and x.name != "generator"}
    assert defaults == dict(operator.parameters)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", NAMES)
def test_children_are_like_their_parents_which_stay_as_they_were(
    make_adapter: Make, name: str, dtype: torch.dtype
) -> None:
    parents, untouched = (parents_of(name, make_adapter, dtype=dtype) for _ in range(2))
    child = apply(name, parents, rng())
    assert list(child) == list(parents[0])
    memory = {f.data_ptr() for parent in parents for x in parent.values() for f in (x.A, x.B)}
    for module, factors in child.items():
        for mine, theirs in ((factors.A, parents[0][module].A), (factors.B, parents[0][module].B)):
            assert (mine.shape, mine.dtype, mine.device) == (theirs.shape, theirs.dtype, theirs.device)
            assert mine.is_contiguous()
            assert not mine.requires_grad
            assert torch.isfinite(mine).all()
            assert mine.data_ptr() not in memory
    assert all(same_bits(*pair) for pair in zip(parents, untouched, strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_same_seed_same_bits_whatever_else_is_drawn_or_in_what_order_modules_come(
    make_adapter: Make, name: str
) -> None:
    parents = parents_of(name, make_adapter, dtype=torch.float32)
    one = apply(name, parents, rng(4))
    state = torch.random.get_rng_state()
    torch.rand(3)
    assert same_bits(one, apply(name, parents, rng(4)))
    reordered = [dict(reversed(parent.items())) for parent in parents]
    assert same_bits(one, dict(reversed(apply(name, reordered, rng(4)).items())))
    torch.random.set_rng_state(state)


@pytest.mark.parametrize("name", NAMES)
def test_the_global_generator_is_left_alone(make_adapter: Make, name: str) -> None:
    before = torch.random.get_rng_state()
    apply(name, parents_of(name, make_adapter), rng())
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.parametrize("name", NAMES)
def test_another_seed_gives_another_child_where_chance_plays(make_adapter: Make, name: str) -> None:
    parents = parents_of(name, make_adapter)
    children = [apply(name, parents, rng(seed)) for seed in range(6)]
    differs = any(not same_bits(children[0], child) for child in children[1:])
    assert differs is (name not in {"copy_parent", "linear_0_5", "ties", "slerp"})


@pytest.mark.parametrize("name", NAMES)
def test_threads_do_not_matter(make_adapter: Make, name: str) -> None:
    parents = parents_of(name, make_adapter, shapes={"m": (96, 80), "n": (80, 96)}, lora_rank=8)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = apply(name, parents, rng())
        torch.set_num_threads(2)
        two = apply(name, parents, rng())
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)
    assert same_bits(two, one)


def test_parameters_reach_the_operator(make_adapter: Make, gap: Callable[[Adapter, Adapter], float]) -> None:
    parent = make_adapter(0)
    assert gap(apply("svd_perturb", [parent], rng(), {"epsilon": 0.0}), parent) < 1e-12
    assert gap(apply("svd_perturb", [parent], rng()), parent) > 1e-3


def changed(adapter: Adapter, module: str, **tensors: torch.Tensor) -> Adapter:
    factors = adapter[module]
    return adapter | {module: LoraFactors(A=tensors.get("A", factors.A), B=tensors.get("B", factors.B))}


def test_parents_that_do_not_fit_are_refused_with_the_reason(make_adapter: Make) -> None:
    good = make_adapter(0)
    nan = changed(good, "a.v", B=good["a.v"].B * float("nan"))
    infinite = changed(good, "a.v", A=good["a.v"].A * float("inf"))
    short = {m: f for m, f in good.items() if m != "c.q"}
    mixed = good | {"c.q": make_adapter(0, lora_rank=2)["c.q"]}
    wide = changed(good, "a.q", A=torch.zeros(3, 7).double())
    integer = changed(good, "a.q", A=torch.ones(3, 6, dtype=torch.int64))
    cases = {
        "parent 1 is not finite: B of 'a.v'": nan,
        "parent 1 is not finite: A of 'a.v'": infinite,
        "parent 1 differs from parent 0 in modules, for example 'c.q'": short,
        r"parent 1 mixes ranks \[2, 3\]": mixed,
        "parent 1 differs from parent 0 in shape of A of 'a.q'": wide,
        "parent 1 differs from parent 0 in shape of A of 'b.up'": make_adapter(0, lora_rank=2),
        "parent 1 differs from parent 0 in dtype of A of 'b.up'": make_adapter(0, dtype=torch.float32),
        "parent 1: A of 'a.q' must be floating point": integer,
        "parent 1 has no modules": {},
    }
    for message, bad in cases.items():
        with pytest.raises(ValueError, match=message):
            apply("layer_select", [good, bad], rng())
    with pytest.raises(ValueError, match="parent 0 is not finite"):
        apply("copy_parent", [nan], rng())


def test_parents_of_different_scaling_are_refused(make_adapter: Make) -> None:
    parents = [make_adapter(0), make_adapter(1)]
    apply("layer_select", parents, rng(), scalings=[2.0, 2.0])
    with pytest.raises(ValueError, match=r"scaling alpha / r: \[2.0, 1.0\]"):
        apply("layer_select", parents, rng(), scalings=[2.0, 1.0])
    with pytest.raises(ValueError, match="`scalings`"):
        apply("layer_select", parents, rng(), scalings=[2.0])


def test_unknown_names_and_wrong_numbers_are_refused(make_adapter: Make) -> None:
    parent = make_adapter(0)
    with pytest.raises(ValueError, match="'breed'"):
        apply("breed", [parent], rng())
    with pytest.raises(ValueError, match=r"no parameter \['eps'\], it takes \['epsilon'\]"):
        apply("svd_perturb", [parent], rng(), {"eps": 0.1})
    with pytest.raises(ValueError, match="takes 2 parents, got 1"):
        apply("layer_select", [parent], rng())


def test_a_child_that_overflows_its_type_is_refused() -> None:
    """Factors of 6e4 fit float16 (at most 65504); those of a delta ten thousand times as large do not."""
    ones = torch.full((1, 1), 6e4, dtype=torch.float16)
    better, worse = ({"m": LoraFactors(A=ones, B=sign * ones)} for sign in (1, -1))
    apply("extrapolate", [better, worse], rng(), {"low": 1.0, "high": 1.0})
    with pytest.raises(ValueError, match="the child of extrapolate is not finite"):
        apply("extrapolate", [better, worse], rng(), {"low": 1e4, "high": 1e4})
