"""The layers of docs/design.md: who may import whom, read from the source, and what an import may load."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("populora_env", "populora_agents", "league")

FORBIDDEN = {
    "populora_env": {"torch", "transformers", "peft", "vllm", "populora_agents", "league", "trueskill"},
    "populora_agents": {"league", "trueskill"},
    "league": set(),
}
ONLY_IN = {
    "pyspiel": {f"league/classic/{name}.py" for name in ("games", "references", "tree")},
    "trueskill": {"league/ratings.py"},
    "openskill": {"league/ratings.py"},
    "peft": {"populora_agents/peft_trainer.py"},
    "vllm": {f"populora_agents/backends/{name}.py" for name in ("vllm", "vllm_sampler", "vllm_server")},
    "seccomp": {"populora_env/sandbox/seccomp_filter.py"},
    "pyseccomp": {"populora_env/sandbox/seccomp_filter.py"},
}
BARE_GPU_BOX = {"stack", "lora", "losses", "advantages"}
"""Modules of populora_agents that import only torch, transformers, safetensors, numpy and the standard library."""

LIGHT = [
    "populora_env",
    "populora_env.types",
    "populora_env.config",
    "populora_agents",
    "populora_agents.config",
    "populora_agents.types",
    "league",
    "league.types",
    "league.config",
    "league.options",
    "league.rules",
]
HEAVY = ("torch", "transformers", "vllm")


def sources() -> Iterator[tuple[str, Path]]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            yield package, path


def imported(path: Path) -> set[str]:
    """Return the dotted names that a file imports, wherever in it the import stands."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names.add(node.module or "")
    return names


def test_packages_import_only_downwards() -> None:
    for package, path in sources():
        roots = {name.split(".")[0] for name in imported(path)}
        assert not roots & FORBIDDEN[package], path


@pytest.mark.parametrize("library", sorted(ONLY_IN))
def test_libraries_stay_behind_their_one_module(library: str) -> None:
    importers = {str(p.relative_to(ROOT)) for _, p in sources() if library in {n.split(".")[0] for n in imported(p)}}
    assert importers <= ONLY_IN[library]


def test_training_core_runs_on_a_bare_gpu_box() -> None:
    allowed = {"torch", "transformers", "safetensors", "numpy", "populora_agents", *sys.stdlib_module_names}
    for name in BARE_GPU_BOX:
        roots = {module.split(".")[0] for module in imported(ROOT / "populora_agents" / f"{name}.py")}
        assert roots <= allowed, name


@pytest.mark.parametrize("module", LIGHT)
def test_light_modules_load_nothing_heavy(module: str) -> None:
    probe = f"import sys, {module}; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"


def test_init_files_never_implement() -> None:
    for _, path in sources():
        if path.name != "__init__.py":
            continue
        defined = [n.name for n in ast.parse(path.read_text()).body if isinstance(n, ast.FunctionDef | ast.ClassDef)]
        assert set(defined) <= {"__getattr__", "__dir__"}, path


def test_files_stay_readable_in_one_sitting() -> None:
    for _, path in sources():
        assert len(path.read_text().splitlines()) <= 400, path
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert (node.end_lineno or 0) - node.lineno < 80, f"{path}:{node.name}"


def test_only_commands_print() -> None:
    commands = {"league/display.py", "populora_env/play.py", "populora_env/verify.py"}
    for _, path in sources():
        if str(path.relative_to(ROOT)) in commands:
            continue
        calls = [n.func for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Call)]
        assert not any(isinstance(f, ast.Name) and f.id == "print" for f in calls), path
