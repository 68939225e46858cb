"""The steps of our programs that take more than an expression: branches, bounded loops, and calls of a helper.

Owns the tables. A `while` loop only ever counts down to a constant.
"""

from __future__ import annotations

from typing import Final

from populora_env.generator_families import Family
from populora_env.generator_steps import DICT, INT, LIST, STR, TUPLE, Step


def _branch(test: str, first: str, second: str) -> str:
    return f"if {test}:\n    {{o}} = {first}\nelse:\n    {{o}} = {second}"


def _loop(start: str, over: str, *body: str) -> str:
    return "\n".join([f"{{o}} = {start}", f"for i in {over}:", *(f"    {line}" for line in body)])


_BRANCHES: Final = (
    ("if above", _branch("{x} > {k}", "{x} - {l}", "{x} + {m}"), INT, INT),
    ("if below", _branch("{x} < {k}", "{x} * {m}", "{x} - {l}"), INT, INT),
    ("if even", _branch("{x} % 2 == 0", "{x} + {k}", "{x} - {l}"), INT, INT),
    ("if letter", _branch("'{c}' in {x}", "{x}[1:]", "{x} + '{s}'"), STR, STR),
    ("if starts", _branch("{x}[0] == '{c}'", "{x}[::-1]", "'{d}' + {x}"), STR, STR),
    ("if long", _branch("len({x}) > {n}", "{x}[:2]", "{x} * 2"), STR, STR),
    ("if first", _branch("{x}[0] > {k}", "{x}[1:]", "{x} + [{l}]"), LIST, LIST),
    ("if has", _branch("{k} in {x}", "{x}[::-1]", "[{k}] + {x}"), LIST, LIST),
    ("if long", _branch("len({x}) > {m}", "{x}[:-1]", "{x} + [{k}]"), LIST, LIST),
    ("if falling", _branch("{x}[0] > {x}[1]", "{x}[::-1]", "{x} + ({k},)"), TUPLE, TUPLE),
    ("if key", _branch("'{c}' in {x}", "{x}['{c}']", "{k}"), DICT, INT),
)
_LOOPS: Final = (
    ("loop sum", _loop("0", "{x}", "{o} += i"), LIST, INT),
    ("loop sum", _loop("{k}", "{x}", "{o} += i"), TUPLE, INT),
    ("loop subtract", _loop("{k}", "{x}", "{o} -= i"), LIST, INT),
    ("loop swing", _loop("0", "{x}", "{o} = i - {o}"), LIST, INT),
    ("loop sum above", _loop("0", "{x}", "if i > {k}:", "    {o} += i"), LIST, INT),
    ("loop grow", _loop("{x}", "range({m})", "{o} += {k}"), INT, INT),
    ("loop climb", _loop("{x}", "range({n})", "{o} += i"), INT, INT),
    ("loop down", "{o} = {x}\nwhile {o} > {k}:\n    {o} -= {n}", INT, INT),
    ("loop list", _loop("[]", "range({n})", "{o} = {o} + [{x} + i]"), INT, LIST),
    ("loop front", _loop("[]", "{x}", "{o} = [i] + {o}"), LIST, LIST),
    ("loop add", _loop("[]", "{x}", "{o}.append(i + {k})"), LIST, LIST),
    ("loop filter", _loop("[]", "{x}", "if i > {k}:", "    {o}.append(i)"), LIST, LIST),
    ("loop front text", _loop("''", "{x}", "{o} = i + {o}"), STR, STR),
    ("loop twice", _loop("''", "{x}", "{o} += i * 2"), STR, STR),
    ("loop without", _loop("''", "{x}", "if i != '{c}':", "    {o} += i"), STR, STR),
    ("loop count", _loop("0", "{x}", "if i == '{c}':", "    {o} += {k}"), STR, INT),
    ("loop tally", _loop("{{}}", "{x}", "{o}[i] = {o}.get(i, 0) + 1"), STR, DICT),
    ("loop values", _loop("0", "{x}", "{o} += {x}[i]"), DICT, INT),
)
_NUMBERS: Final = ("x + {k}", "x - {k}", "{k} - x", "x * {m}", "x % {n}", "x - {k} if x > {l} else x + {m}")
_TEXTS: Final = ("x[::-1]", "x[1:] + x[0]", "x + '{c}'", "x * 2", "x[1:]", "x.replace('{c}', '{d}')")
_LISTS: Final = ("x[::-1]", "x[1:] + x[:1]", "x + [{k}]", "sorted(x)", "[i + {k} for i in x]")


def _helpers() -> tuple[Step, ...]:
    """Return each way to call a helper with each helper that it can call."""
    calls = (
        ("call", "g({x})", INT, INT, _NUMBERS, 4),
        ("call twice", "g(g({x}))", INT, INT, _NUMBERS, 1),
        ("call and add", "g({x}) + {x}", INT, INT, _NUMBERS[:4], 1),
        ("call each", "[g(i) for i in {x}]", LIST, LIST, _NUMBERS, 1),
        ("call and pair", "[{x}, g({x})]", INT, LIST, _NUMBERS, 1),
        ("call", "g({x})", STR, STR, _TEXTS, 4),
        ("call twice", "g(g({x}))", STR, STR, _TEXTS[1:], 1),
        ("call and join", "{x} + g({x})", STR, STR, _TEXTS[:2], 1),
        ("call", "g({x})", LIST, LIST, _LISTS, 4),
        ("call twice", "g(g({x}))", LIST, LIST, _LISTS[1:3], 1),
    )
    return tuple(
        Step(
            tag=tag,
            family=Family.HELPERS,
            template=template,
            takes=takes,
            gives=gives,
            helper=helper,
            weight=weight,
        )
        for tag, template, takes, gives, helpers, weight in calls
        for helper in helpers
    )


def _blocks(family: Family, rows: tuple[tuple[str, str, str, str], ...]) -> tuple[Step, ...]:
    return tuple(
        Step(tag=tag, family=family, template=template, takes=takes, gives=gives, is_block=True)
        for tag, template, takes, gives in rows
    )


BLOCKS: Final = (*_blocks(Family.BRANCHES, _BRANCHES), *_blocks(Family.LOOPS, _LOOPS), *_helpers())
"""Every other step."""
