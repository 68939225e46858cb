"""Programs in what models write."""

from __future__ import annotations

import pytest

from league.evaluation.programs import HUMANEVAL_STOP, code_block, cut, preamble, solution

PROMPT = 'from typing import List\n\ndef helper(x):\n    return x\n\n\ndef g(x: int) -> int:\n    """Say."""\n'


@pytest.mark.parametrize(
    ("text", "block"),
    [
        ("def g(): pass", "def g(): pass"),
        ("Sure:\n```python\ndef g(): pass\n```\nThat is it.", "def g(): pass\n"),
        ("```\nx = 1\n```\n```python\ndef g(): pass\n```", "def g(): pass\n"),
        ("```python\ndef g(): 1\n```\nBetter:\n```python\ndef g(): 2\n```", "def g(): 2\n"),
        ("```python\ndef g(): 1\n```\nUse:\n```python\nprint(g())\n```", "def g(): 1\n"),
        ("```bash\npip install x\n```\n```py\ndef g(): 1\n```", "def g(): 1\n"),
        ("```python\ndef g():\n    return 1", "def g():\n    return 1"),
        ("  ```python\ndef g(): 1\n  ```", "def g(): 1\n"),
    ],
)
def test_blocks_are_found(text: str, block: str) -> None:
    assert code_block(text, "g") == block


def test_a_continuation_ends_where_it_leaves_the_function() -> None:
    text = "    return x\n\ndef other():\n    pass\n"
    assert cut(text, HUMANEVAL_STOP) == "    return x\n"
    program = solution(text, "base", prompt=PROMPT, entry="g", stop=HUMANEVAL_STOP)
    assert program == PROMPT + "    return x\n"


def test_a_block_gets_what_stands_before_the_function_or_continues_the_prompt() -> None:
    whole = solution("```python\ndef g(x):\n    return helper(x)\n```", "chat", prompt=PROMPT, entry="g", stop=())
    body = solution("```python\n    return helper(x)\n```", "chat", prompt=PROMPT, entry="g", stop=())
    for program in (whole, body):
        names: dict[str, object] = {}
        exec(program, names)
        assert names["g"](3) == 3  # type: ignore[operator]


def test_a_prompt_that_begins_no_function_stands_before_nothing() -> None:
    assert preamble('"""Write g."""\n', "g") == ""
