"""`config.yaml`: a configuration as text, and back.

Owns the format: nested plain values, `config_version` first. Every value is checked again when it is read, by type here
and by range in the configuration's own classes.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin, get_type_hints

import yaml

from league.config import CONFIG_VERSION, RunConfig


class ConfigError(ValueError):
    """A configuration file that cannot be used; the message is one line for the user."""


def dump_config(config: RunConfig) -> str:
    """Return the configuration as YAML; `out` is left out, so that the file makes a new run elsewhere."""
    values = _plain(config)
    values["out"] = None
    return yaml.safe_dump({"config_version": CONFIG_VERSION, **values}, sort_keys=False, allow_unicode=True)


def load_config(text: str) -> RunConfig:
    """Read what `dump_config` wrote; fields that are missing take their defaults.

    Raises:
        ConfigError: No YAML mapping, another `config_version`, an unknown field, a value of a wrong type or range.
    """
    try:
        values = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"no YAML: {' '.join(str(error).split())}") from error
    if not isinstance(values, dict):
        raise ConfigError(f"expected a YAML mapping, got {type(values).__name__}")
    version = values.pop("config_version", None)
    if version != CONFIG_VERSION:
        raise ConfigError(f"`config_version` must be {CONFIG_VERSION}, got {version!r}")
    return cast(RunConfig, _build(RunConfig, values, ""))


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value


def _build(kind: type, values: Any, where: str) -> Any:
    """Return a dataclass of that kind from a mapping, checking names and types on the way down."""
    if not isinstance(values, Mapping):
        raise ConfigError(f"`{where or 'config'}` must be a mapping, got {values!r}")
    hints = get_type_hints(kind, include_extras=False)
    names = {field.name: field for field in fields(kind)}
    if unknown := sorted(str(name) for name in values if name not in names):
        raise ConfigError(f"unknown field {_under(where, unknown[0])!r}")
    for name, field in names.items():
        if name not in values and field.default is MISSING and field.default_factory is MISSING:
            raise ConfigError(f"`{_under(where, name)}` is missing")
    arguments = {name: _read(hints[name], value, _under(where, name)) for name, value in values.items()}
    try:
        return kind(**arguments)
    except ValueError as error:
        raise ConfigError(str(error)) from error


def _read(kind: Any, value: Any, where: str) -> Any:
    origin, options = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _read(options[0], value, where)
    if origin in (Union, types.UnionType):
        return _read_union(options, value, where)
    if origin is tuple and isinstance(value, list):
        return tuple(_read(options[0], item, where) for item in value)
    if is_dataclass(kind) and isinstance(kind, type):
        return _build(kind, value, where)
    if origin is Literal and value in options and type(value) is type(options[options.index(value)]):
        return value
    if isinstance(kind, type) and issubclass(kind, Enum) and value in [item.value for item in kind]:
        return kind(value)
    if kind is float and type(value) is int:
        return float(value)
    if isinstance(kind, type) and type(value) is kind:
        return value
    wanted = getattr(kind, "__name__", str(kind)) if origin is None else str(kind)
    raise ConfigError(f"`{where}` must be {wanted}, got {value!r}")


def _read_union(options: tuple[Any, ...], value: Any, where: str) -> Any:
    if value is None and type(None) in options:
        return None
    (kind,) = (option for option in options if option is not type(None))
    return _read(kind, value, where)


def _under(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name
