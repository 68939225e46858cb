"""Leagues on Ray: the same numbers as here, an end by Ctrl-C, and workers and nodes that are killed in mid-step."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from run_contents import contents
from safetensors.torch import load_file

from league.executors.cluster import Call, Cluster
from league.run import main

ray = pytest.importorskip("ray", reason="ray is not installed: pip install '.[ray]'")
cluster_utils = pytest.importorskip("ray.cluster_utils")
pytestmark = pytest.mark.slow

FLAGS = (
    "--base nano --teachers 3 --students 2 --steps 6 --evolve-every 2 --min-age 0 --save-every 1 --proposals 4 "
    "--attempts 2 --tasks deduction --threads 1 --rollout-shards 2 --trainer-shards 2 --game.seed-problems 16 "
    "--past-opponents 0.4 --cross-eval-every 3"
)
SETTINGS = FLAGS.split()
MARK = "POPULORA_TEST_CLUSTER"
"""In the environment of everything that a test's run starts, so that its processes are known."""


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run that all others have to equal."""
    out = tmp_path_factory.mktemp("here") / "run"
    assert main([*SETTINGS, "--out", str(out)]) == 0
    counts = load_file(out / "state" / "step=6" / "optimiser.safetensors")["counts"]
    assert (counts > 0).sum() >= 2, "without learning the comparison would be worth little"
    return out


def marked(mark: str) -> list[int]:
    """Return the processes that bear the mark."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or is somebody else's
            if f"{MARK}={mark}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return found


def parent_of(pid: int) -> int | None:
    """Return a process's parent, None where it has ended."""
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return None


def wait_until(condition: Callable[[], Any], what: str, seconds: float = 240.0) -> Any:
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.01)
    return value


def test_ctrl_c_leaves_no_process_and_the_resumed_run_equals_one_played_here(here: Path, tmp_path: Path) -> None:
    out, mark = tmp_path / "run", str(tmp_path)
    folders = set(Path(tempfile.gettempdir()).glob("ray-*"))
    command = [sys.executable, "-m", "league.run", *SETTINGS, "--executor", "ray", "--out", str(out)]
    running = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, MARK: mark},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    wait_until(lambda: (out / "commits" / "step=1.json").exists() or running.poll() is not None, "the first step")
    assert running.poll() is None, running.communicate()
    os.killpg(running.pid, signal.SIGINT)  # as a terminal does: to all of the group
    printed, complaint = running.communicate(timeout=120)
    assert running.returncode == 130, complaint
    assert "Traceback" not in printed + complaint
    assert complaint.count("\n") == 1
    wait_until(lambda: not marked(mark), "the end of all processes", 30)
    assert not (out / "exchange").exists()
    assert set(Path(tempfile.gettempdir()).glob("ray-*")) <= folders
    assert main(["--resume", str(out), "--executor", "ray"]) == 0
    assert contents(out) == contents(here)
    assert not (out / "exchange").exists()


@pytest.fixture
def cluster() -> Iterator[Any]:
    """Two nodes on this machine, both of which the scheduler knows."""
    nodes = cluster_utils.Cluster(
        initialize_head=True,
        connect=True,
        head_node_args={"num_cpus": 1, "object_store_memory": 80 << 20, "include_dashboard": False},
    )
    nodes.add_node(num_cpus=1, object_store_memory=80 << 20)
    wait_until(lambda: ray.available_resources().get("CPU") == 2, "both nodes")
    ray.shutdown()
    yield nodes
    nodes.shutdown()


@pytest.fixture
def harmed(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the harm done so far: a worker, a trainer and a node end while their answers are waited for.

    Who is to end is stopped before the call is sent, so that no answer can come first. A node ends with all who are on
    it, one of whom was asked.
    """
    ask, done = Cluster.ask, list[str]()
    (second,) = cluster.worker_nodes
    raylet = second.all_processes["raylet"][0].process.pid

    def harmful_ask(self: Cluster, calls: Sequence[Call]) -> list[Any]:
        method = calls[0][1] if calls else ""
        if not done and method == "generate":
            kill(done, "worker", asked(self, calls)[0])
        elif done == ["worker"] and method == "update" and (tmp_path / "run/commits/step=1.json").exists():
            kill(done, "trainer", asked(self, calls)[0])
        elif done == ["worker", "trainer"] and (
            there := [pid for pid in asked(self, calls) if parent_of(pid) == raylet]
        ):
            os.kill(there[0], signal.SIGSTOP)
            threading.Timer(0.3, cluster.remove_node, [second], {"allow_graceful": False}).start()
            done.append("node")
        return ask(self, calls)

    def asked(self: Cluster, calls: Sequence[Call]) -> list[int]:
        return ask(self, [(post, "pid", ()) for post, _, _ in calls])

    monkeypatch.setattr(Cluster, "ask", harmful_ask)
    return done


def kill(done: list[str], what: str, pid: int) -> None:
    """Stop a process at once and kill it soon."""
    os.kill(pid, signal.SIGSTOP)
    threading.Timer(0.3, os.kill, [pid, signal.SIGKILL]).start()
    done.append(what)


def test_killing_a_worker_a_trainer_and_a_node_in_mid_step_changes_nothing(
    here: Path, cluster: Any, harmed: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "run"
    assert main([*SETTINGS, "--executor", "ray", "--ray-address", cluster.address, "--out", str(out)]) == 0
    assert harmed == ["worker", "trainer", "node"]
    assert not cluster.worker_nodes
    assert contents(out) == contents(here)


@pytest.mark.parametrize(
    ("address", "reason"), [("127.0.0.1:1", "Connection refused"), ("nonsense", "expected HOST:PORT or auto")]
)
def test_a_cluster_that_is_not_there_is_one_line(
    address: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--executor", "ray", "--ray-address", address, "--out", str(tmp_path / "run")]
    assert main([*SETTINGS, *flags]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert f"cannot join the Ray cluster at {address!r}" in err
    assert reason in err
    assert not (tmp_path / "run").exists()
