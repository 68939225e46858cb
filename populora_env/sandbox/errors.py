"""The one exception of the sandbox: a fault of ours, never something that a job did."""

from __future__ import annotations


class SandboxError(RuntimeError):
    """The sandbox cannot start or cannot be trusted; what a job does is a verdict, never this."""
