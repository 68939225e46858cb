"""Base models: where they come from, and the settings that go with their size.

Owns loading, and which preset belongs to which base (`config` has the presets). Weights are read from safetensors only,
code from a model folder is never run.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from huggingface_hub import HfApi, snapshot_download
from huggingface_hub.errors import LocalEntryNotFoundError, RepositoryNotFoundError
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from populora_agents.config import LARGE, NANO, PRESETS, SMALL, Preset

_LOG = logging.getLogger(__name__)

NANO_VERSIONS = ("nano-1", "nano-2", "nano-3")
"""Our own base, oldest first; `nano` is the last one."""

_WEIGHTS = Path(__file__).parent / "nano" / "weights"
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
_HUB_TIMEOUT_S = 4.0
_WANTED_FILES = ["*.json", "*.safetensors", "*.jinja", "*.txt", "*.model"]
_LONGEST_REASON = 200
_LARGE_FROM = 3_500_000_000
"""Parameters from which on an instruction model reads rules rather than examples."""


class BaseError(ValueError):
    """A base model that cannot be used; the message is one line for the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """A frozen base model with its tokenizer and its preset."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    preset: Preset
    name: str
    """As asked for, with `nano` resolved to its version."""

    @property
    def eos_ids(self) -> frozenset[int]:
        """Tokens that end a completion: the tokenizer's and those of the model's generation config."""
        named = getattr(self.model.generation_config, "eos_token_id", None)
        listed = named if isinstance(named, list) else [named]
        return frozenset(number for number in (*listed, self.tokenizer.eos_token_id) if number is not None)

    @property
    def context_tokens(self) -> int | None:
        """Longest sequence the model was made for, None where its config does not say."""
        longest = getattr(self.model.config.get_text_config(), "max_position_embeddings", None)
        return longest if isinstance(longest, int) else None


def load_base(
    name: str, *, device: torch.device | str = "cpu", dtype: torch.dtype | None = None, preset: Preset | None = None
) -> Base:
    """Load `nano`, a version of it, a model folder, or a model from the Hugging Face hub.

    Args:
        name: `nano`, `nano-1`, a path, or `owner/model`.
        device: Where the model goes.
        dtype: Of the weights; None is float32 on a CPU (bf16 is slow there) and the file's own elsewhere.
        preset: None takes the one that belongs to the base.

    Raises:
        BaseError: There is no such base, or it cannot be read.
    """
    name = NANO_VERSIONS[-1] if name == "nano" else name
    folder = locate_base(name)
    _check_folder(name, folder)
    if dtype is None and torch.device(device).type == "cpu":
        dtype = torch.float32
    model, tokenizer = _read(name, folder, dtype)
    if len(tokenizer) > model.config.get_text_config().vocab_size:
        raise BaseError(f"base {name!r}: its tokenizer has {len(tokenizer)} tokens, more than the model embeds")
    # transformers' decorator hides the signature of `to`.
    model.to(device)  # type: ignore[arg-type]
    model.eval().requires_grad_(False)
    if preset is None:
        named = model.config.to_dict().get("populora_preset")
        preset = _choose(name, named, tokenizer.chat_template is not None, model.num_parameters())
    return Base(model=model, tokenizer=tokenizer, preset=preset, name=name)


def weights_sha256(name: str) -> dict[str, str]:
    """Return the sha256 of a base's weights, by file, as `sha256sum` gives it; `name` is a loaded base's."""
    folder = _locate(name) or _cached(name)
    files = sorted(folder.glob("*.safetensors")) if folder is not None else []
    found: dict[str, str] = {}
    for path in files:
        with path.open("rb") as file:
            found[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def locate_base(name: str) -> Path:
    """Return the folder of a base, fetched where it is a hub id that the cache lacks.

    Raises:
        BaseError: There is no such base.
    """
    name = NANO_VERSIONS[-1] if name == "nano" else name
    return _locate(name) or _fetch(name)


def _choose(name: str, named: object, chats: bool, parameters: int) -> Preset:
    """Return the preset that the folder names, else the one for bases of this kind."""
    kind = NANO if name in NANO_VERSIONS else SMALL if chats and parameters < _LARGE_FROM else LARGE
    return PRESETS.get(str(named), kind)


def _locate(name: str) -> Path | None:
    """Return the folder that `name` stands for, None when it is a hub id."""
    folder = _WEIGHTS / name if name in NANO_VERSIONS else Path(name).expanduser()
    if folder.is_dir():
        return folder
    if name in NANO_VERSIONS:
        raise BaseError(f"base {name!r}: its weights are not part of this installation")
    if name.startswith("nano-"):
        raise BaseError(f"base {name!r}: no such version, there is {', '.join(NANO_VERSIONS)}")
    if _HUB_ID.fullmatch(name) and not folder.exists():
        return None
    raise BaseError(f"base {name!r}: neither a model folder nor a hub id (owner/model) nor nano")


def _fetch(name: str) -> Path:
    """Return the folder of a hub model: what the local cache holds, else fetched.

    A model that lies in the cache is taken as it is and the hub is not asked, so that a run neither waits for the
    network nor changes because of it.
    """
    cached = _cached(name)
    if cached is not None and _is_whole(cached):
        return cached
    _ask_hub(name)
    try:
        return Path(snapshot_download(name, allow_patterns=_WANTED_FILES))
    except Exception as error:
        # httpx, requests, OSError, ...: which one a broken download raises depends on the version.
        _LOG.debug("base %r could not be fetched", name, exc_info=True)
        raise BaseError(f"base {name!r}: it cannot be fetched ({_reason(error)})") from None


def _cached(name: str) -> Path | None:
    """Return the cache's folder of a hub model, None when there is none."""
    try:
        return Path(snapshot_download(name, allow_patterns=_WANTED_FILES, local_files_only=True))
    except LocalEntryNotFoundError:
        return None


def _is_whole(folder: Path) -> bool:
    """Return whether a download into the cache came to its end: settings, tokenizer, and all shards of the weights."""
    if _missing(folder) is not None:
        return False
    for index in folder.glob("*.safetensors.index.json"):
        try:
            shards = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
        except (ValueError, KeyError, AttributeError, TypeError, OSError):
            return False
        if not all((folder / shard).is_file() for shard in shards):
            return False
    return True


def _ask_hub(name: str) -> None:
    """Try the hub once, in silence, before its client is let loose, which tries for most of a minute and prints.

    Raises:
        BaseError: It does not answer, or answers that there is no such model.
    """
    try:
        HfApi().model_info(name, timeout=_HUB_TIMEOUT_S)
    except RepositoryNotFoundError:
        raise BaseError(f"base {name!r}: the hub has no such model, or none that you may see") from None
    except Exception:
        # As in `_fetch`.
        _LOG.debug("the hub does not answer", exc_info=True)
        raise BaseError(f"base {name!r}: the hub does not answer, and its cache has no such model") from None


def _check_folder(name: str, folder: Path) -> None:
    """Say what is missing before transformers says it at length."""
    if (missing := _missing(folder)) is not None:
        raise BaseError(f"base {name!r}: {missing}")


def _missing(folder: Path) -> str | None:
    """Return what a model folder lacks, None when it has all that is needed."""
    if not (folder / "config.json").is_file():
        return "no model folder, config.json is missing"
    if not any(folder.glob("*.safetensors")):
        return "no weights, the folder has no .safetensors file"
    if not any((folder / file).is_file() for file in ("tokenizer.json", "tokenizer_config.json", "vocab.json")):
        return "no tokenizer, tokenizer.json is missing"
    return None


def _read(name: str, folder: Path, dtype: torch.dtype | None) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Read model and tokenizer; the one place where any failure of transformers becomes a `BaseError`."""
    part = "model"
    try:
        with _quiet():
            # Annotated, since transformers does not declare that `output_loading_info` makes this a pair.
            loaded: Any = AutoModelForCausalLM.from_pretrained(
                str(folder),
                dtype="auto" if dtype is None else dtype,
                use_safetensors=True,
                trust_remote_code=False,
                ignore_mismatched_sizes=True,
                output_loading_info=True,
            )
            part = "tokenizer"
            tokenizer = AutoTokenizer.from_pretrained(str(folder), trust_remote_code=False)
    except Exception as error:
        _LOG.debug("base %r could not be read", name, exc_info=True)
        raise BaseError(f"base {name!r}: its {part} cannot be read ({_reason(error)})") from None
    model, info = loaded
    for flaw in ("missing_keys", "mismatched_keys"):
        if info[flaw]:
            key = min(str(key if isinstance(key, str) else key[0]) for key in info[flaw])
            raise BaseError(f"base {name!r}: its weights do not fit its config ({flaw.partition('_')[0]}: {key})")
    return model, tokenizer


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep transformers' progress bars and warnings away while a model is read; a failure says it in one line."""
    level, bar = transformers.logging.get_verbosity(), transformers.logging.is_progress_bar_enabled()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers.logging.set_verbosity(level)
        if bar:
            transformers.logging.enable_progress_bar()


def _reason(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    first = " ".join(lines[:2]) if lines else "no reason given"
    return f"{type(error).__name__}: {first}"[:_LONGEST_REASON]
