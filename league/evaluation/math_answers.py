"""When two mathematical answers are the same: structure by structure here, expression by expression in math-verify.

Owns the final answer in a text, and lists, sets, tuples, intervals, unions, units, percent and thousands separators.
What an expression is worth is math-verify's (and sympy's) to say. Comparing runs in `math_worker` alone: what a model
writes may keep sympy busy for ever, or take all memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Final

_LONGEST = 600
"""Characters of an answer; longer ones are no answers to these benchmarks."""
_OPEN, _CLOSE = "([{", ")]}"
_SPACING = re.compile(r"\\[!,;: ]|\\q?quad\b|~|\\(?:left|right|bigl|bigr|Bigl|Bigr|big|Big|displaystyle)\b(?![a-z])")
_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:(?:\{,\}|,(?! ))\d{3})+(?![\d])")
_WORDS = re.compile(r"\\(?:text|mathrm|textbf|mathbf|textit|operatorname|mbox|textrm|mathit|rm)\s*\{([^{}]*)\}")
_UNIT = re.compile(
    r"(?<=[\d\})])(?:\s*\\?(?:cm|mm|km|meters?|feet|foot|ft|inch(?:es)?|miles?|mi|yards?|seconds?|sec|minutes?|min|hours?"
    r"|hr|days?|weeks?|months?|years?|mph|degrees?|deg|dollars?|cents?|units?|square units?|grams?|kg|liters?|mL|people"
    r"|students?|ways?|eggs?|apples?|points?|times|Hz|mole?|radians?|rad)"
    r"|\s+(?:m|s|h|g|L|J|K|N|W|V|in))"  # short ones may be variables where they follow at once
    r"(?:\s*(?:\^\s*\{?-?\d\}?|[23]))?(?:\s*(?:/|per)\s*[a-zA-Z]+(?:\^\{?-?\d\}?)?)?\.?$"
)
_DEGREES = re.compile(r"\^\s*(?:\{\s*\\circ\s*\}|\\circ)|\\degree\b|°")
_NAMED = re.compile(r"^\s*(?:\\?[A-Za-z](?:_\{?\w+\}?)?(?:\([a-z]\))?)\s*(?:=|\\in)\s*(?=\S)")
_SCIENTIFIC = re.compile(r"(?<![\w.])([-+]?\d+(?:\.\d*)?|[-+]?\.\d+)[eE]([-+]?\d+)(?![\w.])")
_CHOICE = re.compile(r"^\(?([A-Z])\)?\.?$")
_PHRASE = re.compile(r"(?:final answer|answer)\s*(?:is|:)\s*:?\s*(.+?)(?:\.?\s*$|\.\s)", re.IGNORECASE | re.MULTILINE)
_NUMBER = re.compile(r"[-+]?\$?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:/\d+)?%?")

Same = Callable[[str, str], bool]
"""Whether two expressions without commas at the top are worth the same."""


def final_answer(text: str) -> str | None:
    r"""Return what a text gives as its answer.

    That is the last `\boxed{}`; else what follows the last `####` or `answer is`; else the last number.
    """
    boxed = last_boxed(text)
    if boxed is not None:
        return boxed
    _, mark, after = text.rpartition("####")
    if mark and after.strip():
        return after.strip().split("\n")[0]
    phrases = _PHRASE.findall(text[-4 * _LONGEST :])
    if phrases:
        return str(phrases[-1])
    numbers = _NUMBER.findall(text[-4 * _LONGEST :])
    return str(numbers[-1]) if numbers else None


def last_boxed(text: str) -> str | None:
    r"""Return the content of the last `\boxed{}` or `\fbox{}` that is closed, None where there is none."""
    for found in reversed(list(re.finditer(r"\\f?boxed\s*\{|\\fbox\s*\{", text))[-20:]):
        depth = 1
        for place in range(found.end(), min(len(text), found.end() + 4 * _LONGEST)):
            depth += {"{": 1, "}": -1}.get(text[place], 0)
            if not depth:
                return text[found.end() : place]
    return None


def same_answer(gold: str, given: str, same: Same, *, atol: float = 0.0) -> bool:
    """Return whether an answer is right.

    Args:
        gold: The right answer.
        given: Another.
        same: Compares expressions.
        atol: Absolute tolerance of a number, where the data name one.
    """
    if len(given) > _LONGEST:
        return False
    if _squeezed(gold) == _squeezed(given):
        return True
    left, right = clean(gold), clean(given)
    if not right:
        return False
    if _squeezed(left) == _squeezed(right):
        return True
    if atol and _within(left, right, atol):
        return True
    if "%" in left or "%" in right:
        return _same_percent(left, right, same)
    return _same_structure(left, right, same)


def clean(text: str) -> str:
    """Return an answer without what carries no value: dollar signs, spacing, names before `=`, units, separators."""
    text = text.strip().strip("$").strip()
    text = (
        text.replace("\\$", "")
        .replace("$", "")
        .replace("\\%", "%")
        .replace("\\{", "\\lbrace ")
        .replace("\\}", "\\rbrace ")
    )
    text = text.replace("\u2212", "-").replace("dfrac", "frac").replace("tfrac", "frac").replace("\\cdot", "*")
    text = _DEGREES.sub("", _SPACING.sub(" ", text))
    text = _THOUSANDS.sub(lambda found: re.sub(r"[{},]", "", found[0]), text)
    text = _WORDS.sub(lambda found: f" {found[1]} ", text)
    text = _SCIENTIFIC.sub(r"\1*10^{\2}", text)
    text = text.strip().rstrip(".").strip()
    text = _UNIT.sub("", text)
    if text.count("=") <= 1:
        text = _NAMED.sub("", text)
    choice = _CHOICE.match(text)
    return choice[1] if choice else text.strip()


def _squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text).lower() if not re.fullmatch(r"\s*\(?[A-Za-z]\)?\s*", text) else text.strip()


def _within(left: str, right: str, atol: float) -> bool:
    try:
        return abs(Decimal(left) - Decimal(right)) <= Decimal(repr(atol))
    except InvalidOperation:
        return False


def _same_percent(left: str, right: str, same: Same) -> bool:
    """Compare where one is in percent: the sign is a unit that may be left out, or a hundredth."""
    bare = [text.replace("%", "").strip() for text in (left, right)]
    if same(*bare):
        return True
    if ("%" in left) == ("%" in right):
        return False
    return same(*(f"({text})/100" if "%" in whole else text for text, whole in zip(bare, (left, right), strict=True)))


def _same_structure(left: str, right: str, same: Same) -> bool:
    if (r"\cup" in left) != (r"\cup" in right):
        return False
    if r"\cup" in left:
        return _same_bag(left.split(r"\cup"), right.split(r"\cup"), same)
    parts = _listed(left), _listed(right)
    if max(map(len, parts)) > 1:
        return _same_bag(*parts, same)
    one, other = _boxed_items(left), _boxed_items(right)
    if one is None and other is None:
        return same(left, right)
    if one is None or other is None:
        return False
    return (
        one[0] == other[0]
        and len(one[1]) == len(other[1])
        and all(_same_structure(a.strip(), b.strip(), same) for a, b in zip(one[1], other[1], strict=True))
    )


def _listed(text: str) -> list[str]:
    r"""Return the items of a list or set: what commas, `and`, `or` or a sign `\pm` set apart at the top."""
    inner = re.fullmatch(r"\\lbrace(.*)\\rbrace", text.strip(), re.DOTALL)
    body = inner[1] if inner else text
    if r"\begin" in body:
        return [body]
    body = re.sub(r"\s(?:and|or)\s|;", ",", body)
    items = [item.strip() for item in _split(body) if item.strip()]
    signed = []
    for item in items:
        if item.count(r"\pm") == 1 and "(" not in item:
            signed += [item.replace(r"\pm", sign) for sign in "+-"]
        else:
            signed.append(item)
    return [_NAMED.sub("", item).lstrip("+") if item.count("=") <= 1 else item for item in signed]


def _boxed_items(text: str) -> tuple[str, list[str]] | None:
    """Return the brackets and the items of a tuple or an interval, None where it is neither."""
    text = text.strip()
    if len(text) < 2 or text[0] not in "([" or text[-1] not in ")]" or not _wraps(text):
        return None
    items = _split(text[1:-1])
    return (text[0] + text[-1], items) if len(items) > 1 else None


def _wraps(text: str) -> bool:
    """Return whether the first bracket is closed by the last character."""
    depth = 0
    for place, char in enumerate(text):
        depth += (char in _OPEN) - (char in _CLOSE)
        if not depth:
            return place == len(text) - 1
    return False


def _split(text: str) -> list[str]:
    items, depth, start = [], 0, 0
    for place, char in enumerate(text):
        depth += (char in _OPEN) - (char in _CLOSE)
        if char == "," and depth == 0:
            items.append(text[start:place])
            start = place + 1
    return [*items, text[start:]]


def _same_bag(left: Sequence[str], right: Sequence[str], same: Same) -> bool:
    """Return whether each item has a partner of its own."""
    if len(left) != len(right):
        return False
    free = list(right)
    for item in left:
        partner = next((one for one in free if _same_structure(item.strip(), one.strip(), same)), None)
        if partner is None:
            return False
        free.remove(partner)
    return True


NUMERIC: Final = re.compile(r"[-+]?\d+(?:\.\d+)?|[-+]?\.\d+")


def same_expression(left: str, right: str) -> bool:
    """Return whether two expressions are worth the same, by math-verify; needs no signal, and has no time limit."""
    if _squeezed(left) == _squeezed(right):
        return True
    if NUMERIC.fullmatch(left.strip()) and NUMERIC.fullmatch(right.strip()):
        return Decimal(left.strip()) == Decimal(right.strip())
    if len(left.strip()) == len(right.strip()) == 1 and left.strip().isalpha() and right.strip().isalpha():
        return False  # sympy takes E for e
    from math_verify import LatexExtractionConfig, parse, verify

    config = [LatexExtractionConfig()]
    gold, given = (
        parse(f"${text}$", config, parsing_timeout=None, fallback_mode="no_fallback") for text in (left, right)
    )
    return bool(gold and given and verify(gold, given, timeout_seconds=None, float_rounding=6))
