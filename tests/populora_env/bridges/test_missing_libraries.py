"""Each bridge says what to install where its library is missing, and the package itself asks for none."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

LIBRARIES = {
    "benchmarl": "benchmarl",
    "sb3": "stable_baselines3",
    "tianshou": "tianshou",
    "torchrl": "torchrl",
    "verifiers": "verifiers",
}


@pytest.mark.parametrize("bridge", sorted(LIBRARIES))
def test_a_missing_library_is_named_with_the_way_to_get_it(bridge: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, library = f"populora_env.bridges.{bridge}", LIBRARIES[bridge]
    for loaded in [module for module in sys.modules if module == name or module.startswith(f"{library}.")]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, library, None)  # type: ignore[arg-type]  # what an import takes for missing
    with pytest.raises(ImportError, match=r"populora_env\.bridges\.\w+ needs \S+.*: pip install "):
        importlib.import_module(name)


def test_scores_and_trls_environment_need_no_library_but_ours() -> None:
    probe = (
        "import sys, populora_env.bridges, populora_env.bridges.compute_score, populora_env.bridges.trl\n"
        "print(sorted({name.split('.')[0] for name in sys.modules} & {'torch', 'torchrl', 'trl', 'transformers'}))"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
