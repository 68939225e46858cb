"""How data and scripts get into the page without being able to leave their place in it.

Pure. Data are JSON in which nothing can close a script element; scripts run only if the page names their hash.
"""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup


def embedded(value: Any) -> Markup:
    """Return a value as JSON for a script element: `<`, `>`, `&` and `'` are escaped.

    Raises:
        ValueError: It has a number that is not finite, for which JSON has no form.
    """
    return htmlsafe_json_dumps(
        value, dumps=json.dumps, allow_nan=False, ensure_ascii=False, separators=(",", ":"), sort_keys=False
    )


def script_hash(script: str) -> str:
    """Return what a content security policy calls a script by."""
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"
