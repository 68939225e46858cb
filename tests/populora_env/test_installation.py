"""Commands without their libraries: one line that says what to install, in a process that cannot find one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HIDE = """
import sys

class Hide:
    def find_spec(self, name, path=None, target=None):
        if name in {hidden!r}:
            raise ModuleNotFoundError(name=name)

sys.meta_path.insert(0, Hide())
"""


def without(folder: Path, hidden: set[str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python where these libraries cannot be found."""
    (folder / "sitecustomize.py").write_text(HIDE.format(hidden=hidden))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), str(Path(__file__).parents[2])])}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environment, check=False)


@pytest.mark.parametrize(
    ("module", "extra"),
    [
        ("league.run", "league"),
        ("league.verify", "league"),
        ("league.export", "league"),
        ("league.evolve", "league"),
        ("populora_agents.nano.train", "agents"),
    ],
)
def test_a_command_without_its_libraries_is_one_line(tmp_path: Path, module: str, extra: str) -> None:
    hidden = {"torch", "tyro"} if extra == "league" else {"torch"}
    done = without(tmp_path, hidden, "-m", module, "--help")
    assert (done.returncode, done.stdout) == (2, "")
    # Where the tests run without the extras, more than what is hidden is missing.
    told = re.fullmatch(
        rf"error: this command needs (.+), which is not installed: pip install 'populora-league\[{extra}\]'\n",
        done.stderr,
    )
    assert told is not None
    assert hidden <= set(told[1].split(", "))


def test_what_needs_no_library_can_be_used_without(tmp_path: Path) -> None:
    hidden = {"torch", "tyro", "pyarrow", "rich"}
    done = without(tmp_path, hidden, "-c", "import league.types, populora_agents.types; print('fine')")
    assert (done.stdout, done.stderr) == ("fine\n", "")
