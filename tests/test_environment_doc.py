"""Every snippet of docs/environment.md runs, and prints what the page says it prints."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "environment.md"
SNIPPETS = re.findall(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```\n)?", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize(("program", "output"), SNIPPETS, ids=range(len(SNIPPETS)))
def test_a_snippet_runs_and_prints_what_the_page_says(program: str, output: str) -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(program, str(PAGE), "exec"), {"__name__": "__main__"})
    if output:
        assert printed.getvalue() == output


def test_the_page_has_its_snippets() -> None:
    assert len(SNIPPETS) >= 6
    assert sum(bool(output) for _, output in SNIPPETS) >= 1
