"""Settings that all tests share."""

from __future__ import annotations

import os

from hypothesis import settings

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
"""As `league.machine` sets it; torch, which reads it, is loaded after this."""

settings.register_profile("project", deadline=None, derandomize=True)
settings.load_profile("project")
