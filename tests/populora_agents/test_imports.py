"""The package itself is light, and its lazy names are the real ones."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import populora_agents
import populora_agents.backends


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = (
        "import sys, populora_agents, populora_agents.types, populora_agents.backends; "
        "print([name for name in ('torch', 'transformers', 'peft', 'vllm') if name in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


@pytest.mark.parametrize("package", [populora_agents, populora_agents.backends])
def test_every_lazy_name_is_there(package: object) -> None:
    for name in package.__all__:  # type: ignore[attr-defined]
        value = getattr(package, name)
        module = importlib.import_module(package._WHERE[name])  # type: ignore[attr-defined]
        assert value is getattr(module, name)
    with pytest.raises(AttributeError, match="no_such_name"):
        package.no_such_name  # type: ignore[attr-defined] # noqa: B018
