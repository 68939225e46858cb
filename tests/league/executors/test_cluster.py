"""The cluster's edges: Ray that is missing, and an actor that is lost again and again."""

from __future__ import annotations

import os
import signal
import sys

import pytest

from league.executors.cluster import TRIES, Cluster
from league.executors.types import ExecutorError


def test_a_missing_ray_is_named_with_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ExecutorError, match=r"`--executor ray` needs Ray: pip install 'populora-league\[ray\]'"):
        Cluster()


class Mortal:
    """Dies of one question, and fails at another."""

    def pid(self) -> int:
        """Live."""
        return os.getpid()

    def die(self) -> None:
        """Die."""
        os.kill(os.getpid(), signal.SIGKILL)

    def fail(self, error: Exception) -> None:
        """Raise."""
        raise error


@pytest.mark.slow
def test_a_call_that_kills_is_given_up_and_errors_come_back_as_they_were() -> None:
    ray = pytest.importorskip("ray", reason="ray is not installed: pip install '.[ray]'")
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    cluster = Cluster()
    try:
        post = cluster.post(Mortal, "mortal 0")
        cluster.wait_for([post])
        (before,) = cluster.ask([(post, "pid", ())])
        with pytest.raises(ValueError, match=r"^mine$"):
            cluster.ask([(post, "fail", (ValueError("mine"),))])
        with pytest.raises(ExecutorError, match=r"mortal 0: .*No space left on device"):
            cluster.ask([(post, "fail", (OSError(28, "No space left on device"),))])
        with pytest.raises(ExecutorError, match=f"mortal 0 was lost {TRIES} times in a row"):
            cluster.ask([(post, "die", ())])
        assert before != os.getpid()
    finally:
        cluster.close()
