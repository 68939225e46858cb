"""`Cluster`: Ray itself, and the places at which its actors stand.

Owns starting Ray here or joining a cluster, and asking actors: an actor that is lost is made again, on whatever node is
left, and asked again. Owns nothing of what is asked. The only module that touches Ray.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from league.executors.types import ExecutorError

TRIES = 4
"""How often one call is made in all before the cluster is given up."""
PLACING_S = 180.0
"""How long an actor may take to find a node and to come up, in seconds."""
_OBJECT_STORE_BYTES = 256 << 20
"""Shared memory of a Ray that is started here: rollouts and completions pass through it, weights do not."""

_KNOCK_S = 10.0
_LONGEST_FOLDER = 24
"""Characters of a folder for temporary files in which Ray's sockets still fit: their names end at 107."""


@dataclass(slots=True)
class Post:
    """A place for an actor, which is filled again when the actor is lost."""

    make: Callable[[], Any]
    """Makes the actor."""
    title: str
    """What it is, for messages: `rollout worker 0`."""
    actor: Any = None


Call = tuple[Post, str, tuple[Any, ...]]
"""Whom to ask, for which method, with what."""


class Cluster:
    """A Ray cluster of which this process is the driver."""

    def __init__(self, address: str = "") -> None:
        """Start Ray on this machine, or join the cluster at `address`.

        Raises:
            ExecutorError: Ray is not installed, does not start, or there is no such cluster.
        """
        self._ray = _import_ray()
        self._folder = ""
        common: dict[str, Any] = {"include_dashboard": None, "log_to_driver": False, "logging_level": "error"}
        if address:
            settings = {**common, "address": address}
        else:
            usual = tempfile.gettempdir()
            self._folder = tempfile.mkdtemp(prefix="ray-", dir=usual if len(usual) <= _LONGEST_FOLDER else "/tmp")
            settings = {
                **common,
                "address": "local",
                "include_dashboard": False,
                "object_store_memory": _OBJECT_STORE_BYTES,
                "_node_ip_address": "127.0.0.1",
                "_temp_dir": self._folder,
            }
        try:
            if address not in ("", "auto"):
                _knock(address)
            self._ray.init(**settings)
        except BaseException as error:
            self._end()
            if not isinstance(error, Exception):
                raise
            where = f"cannot join the Ray cluster at {address!r}" if address else "cannot start Ray here"
            raise ExecutorError(f"{where}: {_first_line(error)}") from error
        self._posts: list[Post] = []

    def nodes(self) -> list[str]:
        """Return the ids of the nodes that are up."""
        return sorted(node["NodeID"] for node in self._ray.nodes() if node["Alive"])

    def post(self, kind: type, title: str, *arguments: Any, gpus: float = 0.0, node: str | None = None) -> Post:
        """Place an actor; it need not be up when this returns.

        Args:
            kind: Its class.
            title: For messages.
            arguments: Of its constructor.
            gpus: GPUs it holds.
            node: Where it had best stand; None spreads actors over the nodes.
        """
        strategy: Any = "SPREAD"
        if node is not None:
            affinity = import_module("ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy
            strategy = affinity(node_id=node, soft=True)
        # No share of the CPUs: phases take turns, so that actors of different phases share them.
        remote = self._ray.remote(kind).options(num_cpus=0, num_gpus=gpus, scheduling_strategy=strategy)
        place = Post(lambda: remote.remote(*arguments), title)
        place.actor = place.make()
        self._posts.append(place)
        return place

    def wait_for(self, posts: Sequence[Post]) -> None:
        """Return once all these actors are up.

        Raises:
            ExecutorError: One does not come up.
        """
        self._up(posts)
        self.ask([(post, "pid", ()) for post in posts])

    def ask(self, calls: Sequence[Call]) -> list[Any]:
        """Make calls side by side and return their answers, in order.

        Raises:
            ExecutorError: An actor was lost again and again.
            Exception: Whatever a call raised.
        """
        answers: dict[int, Any] = {}
        reasons: dict[int, str] = {}
        for attempt in range(TRIES):
            left = {place: call for place, call in enumerate(calls) if place not in answers}
            reasons = self._try(left, answers)
            if not reasons:
                return [answers[place] for place in range(len(calls))]
            if attempt + 1 < TRIES:
                self._renew([calls[place][0] for place in reasons])
        place, reason = min(reasons.items())
        raise ExecutorError(f"{calls[place][0].title} was lost {TRIES} times in a row: {reason}")

    def _try(self, calls: Mapping[int, Call], answers: dict[int, Any]) -> dict[int, str]:
        """Make calls; add to `answers`, and return why the others have none."""
        errors = self._ray.exceptions
        sent = {place: getattr(post.actor, method).remote(*given) for place, (post, method, given) in calls.items()}
        reasons: dict[int, str] = {}
        for place, reference in sent.items():
            try:
                answers[place] = self._ray.get(reference)
            except errors.RayTaskError as error:
                if isinstance(error.cause, OSError):
                    raise ExecutorError(f"{calls[place][0].title}: {error.cause}") from None
                raise error.cause from None
            except errors.RayError as error:
                reasons[place] = _first_line(error)
        return reasons

    def _renew(self, posts: Sequence[Post]) -> None:
        """Make lost actors again, and wait until they are up."""
        for post in posts:
            with contextlib.suppress(self._ray.exceptions.RayError):
                self._ray.kill(post.actor)
            post.actor = post.make()
        self._up(posts)

    def _up(self, posts: Sequence[Post]) -> None:
        """Wait as long as an actor may take to find a node; one that comes up and is lost again counts as up."""
        pings = [post.actor.pid.remote() for post in posts]
        _, waiting = self._ray.wait(pings, num_returns=len(pings), timeout=PLACING_S)
        if waiting:
            title = posts[pings.index(waiting[0])].title
            raise ExecutorError(
                f"{title} found no place within {PLACING_S:.0f} s: too few nodes are up, or too few GPUs are free"
            )

    def close(self) -> None:
        """End the actors, and Ray if it was started here."""
        for post in self._posts:
            with contextlib.suppress(self._ray.exceptions.RayError):
                self._ray.kill(post.actor)
        self._posts = []
        self._end()

    def _end(self) -> None:
        self._ray.shutdown()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)


def _import_ray() -> Any:
    """Return Ray, told to keep to itself."""
    for name, value in {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}.items():
        os.environ.setdefault(name, value)
    try:
        return import_module("ray")
    except ImportError as error:
        raise ExecutorError("`--executor ray` needs Ray: pip install 'populora-league[ray]'") from error


def _knock(address: str) -> None:
    """Raise OSError where nobody listens at `HOST:PORT`, for which Ray would wait for many minutes."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise OSError("expected HOST:PORT or auto")
    with socket.create_connection((host.strip("[]"), int(port)), timeout=_KNOCK_S):
        pass


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__
