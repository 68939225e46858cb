"""How complex a program is: four numbers read off its syntax tree.

Owns the measures that observations, tables and the archive share. Nothing here runs a program or recurses.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from populora_env.source import SourceError, read_program

SIZE = 4
"""Length of the vectors given here."""

_HALFWAY = np.array([8.0, 4.0, 8.0, 4.0])
"""Value of each measure that is scaled to one half; a short program of several statements lies near it."""

_BRANCHES = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.Assert, ast.match_case)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramFeatures:
    """Structural complexity of one program."""

    ast_depth: int
    """Levels of the syntax tree, the module's own included."""
    cyclomatic: int
    """McCabe's number: 1 + branches, loops, handlers, asserts, cases, comprehensions and their conditions, and the
    operands after the first of each `and` / `or`."""
    lines: int
    """Lines that are not blank."""
    variables: int
    """Different names that are bound: arguments, assignments, loop targets, handlers, captures."""

    def scaled(self) -> npt.NDArray[np.float32]:
        """Return the four measures as float32 [4], each x / (x + halfway), in [0, 1)."""
        values = np.array([self.ast_depth, self.cyclomatic, self.lines, self.variables], dtype=np.float64)
        scaled: npt.NDArray[np.float32] = (values / (values + _HALFWAY)).astype(np.float32)
        return scaled


@lru_cache(maxsize=4096)
def program_features(source: str) -> ProgramFeatures:
    """Measure a program.

    Raises:
        SourceError: The text is no program within the bounds of `source`.
    """
    tree, nodes = read_program(source)
    return ProgramFeatures(
        ast_depth=_depth(tree),
        cyclomatic=1 + sum(map(_decisions, nodes)),
        lines=sum(bool(line.strip()) for line in source.splitlines()),
        variables=len({name for node in nodes for name in _bound(node)}),
    )


def mean_scaled(sources: Sequence[str]) -> npt.NDArray[np.float32]:
    """Return the mean of the programs' scaled features, float32 [4]; zeros for no program or one out of bounds."""
    total = np.zeros(SIZE, dtype=np.float32)
    for source in sources:
        try:
            total += program_features(source).scaled()
        except SourceError:
            continue
    return total / np.float32(max(1, len(sources)))


def _depth(tree: ast.AST) -> int:
    depth, level = 0, [tree]
    while level:
        depth += 1
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return depth


def _decisions(node: ast.AST) -> int:
    if isinstance(node, ast.BoolOp):
        return len(node.values) - 1
    if isinstance(node, ast.comprehension):
        return 1 + len(node.ifs)
    return int(isinstance(node, _BRANCHES))


def _bound(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name is not None:
        yield node.name
    elif isinstance(node, ast.MatchMapping) and node.rest is not None:
        yield node.rest
