"""Whether a package that is run as a command has what it needs, before an import fails with a traceback.

Owns the look and the line. Which libraries belong to which extra is the caller's to say (and pyproject.toml's).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec


def require(extra: str, libraries: Sequence[str]) -> None:
    """End the process with one line and status 2 if `python -m` runs it and a library is missing; else do nothing.

    Args:
        extra: That brings the libraries.
        libraries: Names as they are imported.
    """
    # While the module is looked for, its package is imported and `sys.argv[0]` is still "-m" (documentation of `sys`).
    if sys.argv[:1] != ["-m"]:
        return
    missing = [name for name in libraries if not _is_there(name)]
    if missing:
        sys.stderr.write(
            f"error: this command needs {', '.join(missing)}, which is not installed: "
            f"pip install 'populora-league[{extra}]'\n"
        )
        raise SystemExit(2)


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):
        return False
