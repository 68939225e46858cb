"""Where Qwen2.5-Coder-0.5B-Instruct lies on this machine."""

from __future__ import annotations

import os

import pytest
from huggingface_hub import snapshot_download
from huggingface_hub.errors import LocalEntryNotFoundError

FOLDER = "POPULORA_QWEN_CODER_0_5B"
HUB_ID = "Qwen/Qwen2.5-Coder-0.5B-Instruct"


def qwen_folder() -> str:
    """Return its folder; skip the test where there is none."""
    folder = os.environ.get(FOLDER)
    if folder is None:
        try:
            folder = snapshot_download(HUB_ID, local_files_only=True)
        except LocalEntryNotFoundError:
            pytest.skip(f"needs {HUB_ID} in the hub's cache, or ${FOLDER} to name its folder")
    return folder
