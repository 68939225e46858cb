"""The process that compares mathematical answers: limited in memory, and killed by whoever started it.

Owns the child's side: one JSON object a line in, one out. Started as a script by `math_checker`, so that it loads
neither torch nor the league. Command line: the address space in bytes.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import resource
import sys
from pathlib import Path
from types import ModuleType
from typing import TextIO

CANNOT = "no math-verify"
"""The first line where it is not installed; else `READY`."""
READY = "ready"


def _answers() -> ModuleType:
    """Load `math_answers` by its file: importing it from the package would load the league."""
    spec = importlib.util.spec_from_file_location("math_answers", Path(__file__).with_name("math_answers.py"))
    if spec is None or spec.loader is None:
        raise ImportError("math_answers.py is not beside this file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def limit(memory_bytes: int) -> None:
    """Take rights away that comparing does not need: more memory, files to write, core dumps."""
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main(memory_bytes: int) -> None:
    """Say that it is ready, then answer line by line until the input ends."""
    replies = sys.stdout
    sys.stdout = sys.stderr
    logging.disable(logging.CRITICAL)
    try:
        answers = _answers()
        answers.same_expression(r"\frac{1}{2}+x", "x + 0.5")
    except ImportError:
        _say(replies, CANNOT)
        return
    limit(memory_bytes)
    sys.setrecursionlimit(2000)
    _say(replies, READY)
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            right = answers.same_answer(asked["gold"], asked["given"], answers.same_expression, atol=asked["atol"])
            reply = {"right": bool(right), "detail": "" if right else "wrong"}
        except MemoryError:
            reply = {"right": False, "detail": "memory"}
        except Exception as error:
            # The boundary of hostile text: whatever a parser of three libraries raises at it is the answer's fault.
            reply = {"right": False, "detail": f"error({type(error).__name__})"}
        _say(replies, json.dumps(reply))


def _say(replies: TextIO, line: str) -> None:
    replies.write(f"{line}\n")
    replies.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]))
