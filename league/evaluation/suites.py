"""All suites by name; the one table that knows every benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, Protocol

from league.evaluation import humaneval, livecodebench, maths, mbpp
from league.evaluation.types import EvaluationError, Suite
from populora_env.scoring import ProgramLimits
from populora_env.verifier import Verifier


class MakeSuite(Protocol):
    """What makes a suite."""

    def __call__(
        self, folder: Path | None, verifier: Verifier, limits: ProgramLimits, limit: int | None = None
    ) -> Suite:
        """Return the suite of the first `limit` problems, of the data in `folder` or, if None, from the hub.

        Raises:
            EvaluationError: The data are missing or malformed.
        """
        ...


SUITES: Final[Mapping[str, MakeSuite]] = {
    "humaneval": humaneval.humaneval,
    "humaneval+": humaneval.humaneval_plus,
    "mbpp": mbpp.mbpp,
    "mbpp+": mbpp.mbpp_plus,
    "livecodebench": livecodebench.livecodebench,
    **{name: maths.maths(name) for name in maths.SETS},
}


def make_suite(
    name: str, folder: Path | None, verifier: Verifier, limits: ProgramLimits, limit: int | None = None
) -> Suite:
    """Return a suite by its name.

    Raises:
        EvaluationError: There is no such suite, or its data are missing or malformed.
    """
    if name not in SUITES:
        raise EvaluationError(f"there is no suite {name!r}, only {', '.join(SUITES)}")
    return SUITES[name](folder, verifier, limits, limit)
