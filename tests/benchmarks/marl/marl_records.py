"""Records of runs that never were."""

from __future__ import annotations

from benchmarks.marl.summary import Record


def make_record(environment: str, algorithm: str, seed: int, *, score: float) -> Record:
    """Return a record with two points."""
    return Record(
        environment=environment,
        algorithm=algorithm,
        seed=seed,
        settings={"batches": 2, "games": 32, "steps": 32, "episodes": 64},
        curve=[[0, 0.0], [2048, score]],
        score=score,
        seconds=10.0,
        cpu_seconds=5.0,
    )
