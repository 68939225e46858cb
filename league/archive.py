"""Which kinds of program the teachers have proposed so far: coverage of a centroidal Voronoi tessellation, per task.

Owns the cells and who filled them. Descriptors are the four structural measures of `populora_env.features`, scaled to
[0, 1); the centroids are the same in every run, so that coverages compare. Only membership is kept, no elites: a cell's
number stands in the problems table, where the programs are. Plain numpy: of a quality-diversity library only the
nearest centroid would be used, and `ribs` brings numba, scikit-learn, scipy and pandas.

Source: Vassiliades, Chatzilygeroudis, Mouret, "Using centroidal Voronoi tessellations to scale up MAP-Elites", 2018.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from league import seeds
from league.types import Row
from populora_env.features import SIZE, program_features
from populora_env.source import SourceError
from populora_env.types import Task

ARCHIVE_FILE = "archive.json"
"""Centroids and filled cells, in the folder of a state."""

CELLS = 1024
_SAMPLES, _ROUNDS, _CHUNK = 8192, 4, 128

Points = npt.NDArray[np.float64]


class Archive:
    """Filled cells of each task."""

    def __init__(self, centroids: Points) -> None:
        """Begin empty.

        Args:
            centroids: float64 [cells, 4], finite.

        Raises:
            ValueError: Another shape, no cell, or not finite.
        """
        if centroids.ndim != 2 or centroids.shape[1] != SIZE or not len(centroids) or not np.isfinite(centroids).all():
            raise ValueError(f"`centroids` must be finite, [cells, {SIZE}], got shape {centroids.shape}")
        self._centroids = centroids
        self._filled: dict[Task, set[int]] = {task: set() for task in Task}

    def place(self, problems: Iterable[Row]) -> None:
        """Write `cell_id` into each valid row of the problems table, and fill those cells."""
        for row in self.mark(problems):
            self._filled[Task(row["task"])].add(row["cell_id"])

    def mark(self, problems: Iterable[Row]) -> list[Row]:
        """Write `cell_id` into each valid row of the problems table; return those that have one, and fill nothing."""
        marked = [row for row in problems if row["valid"]]
        for row in marked:
            row["cell_id"] = self.cell(row["program"])
        return [row for row in marked if row["cell_id"] is not None]

    def cell(self, program: str) -> int | None:
        """Return the number of the nearest centroid, the lowest of equals; None for what is no program."""
        try:
            scaled = program_features(program).scaled()
        except SourceError:
            return None
        return int(_nearest(scaled[None].astype(np.float64), self._centroids)[0])

    def coverage(self) -> dict[str, float]:
        """Return shares of the cells that are filled: by task, and by any task whose programs the teachers write."""
        share = {
            f"teacher/coverage/{task.value}": len(cells) / len(self._centroids)
            for task, cells in self._filled.items()
            if cells
        }
        written = set().union(*(cells for task, cells in self._filled.items() if task is not Task.INDUCTION))
        return share | ({"teacher/coverage": len(written) / len(self._centroids)} if written else {})

    def save(self, folder: Path) -> None:
        """Write the archive; numbers survive JSON bit for bit."""
        filled = {task.value: sorted(cells) for task, cells in self._filled.items()}
        text = json.dumps({"centroids": self._centroids.tolist(), "filled": filled})
        (folder / ARCHIVE_FILE).write_text(text, encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Archive:
        """Read what `save` wrote.

        Raises:
            OSError, ValueError, KeyError, TypeError: It is missing or cannot be used.
        """
        saved = json.loads((folder / ARCHIVE_FILE).read_bytes())
        archive = cls(np.array(saved["centroids"], dtype=np.float64))
        for name, cells in saved["filled"].items():
            if not all(isinstance(cell, int) and 0 <= cell < len(archive._centroids) for cell in cells):
                raise ValueError(f"{ARCHIVE_FILE} fills cells of {name!r} that do not exist")
            archive._filled[Task(name)] = set(cells)
        return archive


@lru_cache(maxsize=1)
def standard_centroids(cells: int = CELLS) -> Points:
    """Return centroids that part [0, 1]^4 evenly, float64 [cells, 4], read-only: k-means on uniform samples."""
    rng = seeds.generator(0, 0, "archive", str(cells))
    samples = rng.random((_SAMPLES, SIZE))
    centroids: Points = samples[:cells].copy()
    for _ in range(_ROUNDS):
        owner = _nearest(samples, centroids)
        count = np.bincount(owner, minlength=cells)
        for axis in range(SIZE):
            total = np.bincount(owner, weights=samples[:, axis], minlength=cells)
            centroids[:, axis] = np.where(count > 0, total / np.maximum(count, 1), centroids[:, axis])
    centroids.setflags(write=False)
    return centroids


def _nearest(points: Points, centroids: Points) -> npt.NDArray[np.intp]:
    """Return the nearest centroid of each point; axis by axis, since a matrix product's bits depend on threads."""
    found = []
    for start in range(0, len(points), _CHUNK):
        chunk = points[start : start + _CHUNK]
        distance = np.zeros((len(chunk), len(centroids)))
        for axis in range(SIZE):
            distance += np.square(chunk[:, axis, None] - centroids[None, :, axis])
        found.append(distance.argmin(axis=1))
    return np.concatenate(found)
