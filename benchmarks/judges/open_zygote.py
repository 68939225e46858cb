"""The zygote's own program with every step of isolation taken out; for the benchmark, and of no use otherwise.

It is started as a script in place of `populora_env/sandbox/zygote.py`, with the same command line, and runs that very
file. Imports nothing that the zygote does not: each page more would make its forks dearer.
"""

import os
import sys

_PACKAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "populora_env")
_ZYGOTE = os.path.join(_PACKAGE, "sandbox", "zygote.py")


def _nothing(*_: object, **__: object) -> None:
    """Stand in for a step that only takes rights away."""


def _no_layers(*_: object, **__: object) -> dict[str, bool]:
    return {}


def _replace(owner: object, name: str, replacement: object) -> None:
    getattr(owner, name)  # what is not there any more must be looked for, not silently left in
    setattr(owner, name, replacement)


def _open_up() -> None:
    for name, folder in (("populora_env", _PACKAGE), ("populora_env.sandbox", os.path.join(_PACKAGE, "sandbox"))):
        package = type(sys)(name)
        package.__path__ = [folder]
        sys.modules[name] = package
    from populora_env.sandbox import isolation, kernel

    _replace(isolation, "enter_namespaces", _no_layers)
    _replace(isolation, "seal", _no_layers)
    _replace(isolation.ChildLimits, "apply", _nothing)
    _replace(kernel, "die_with_parent", _nothing)
    _replace(kernel.Filter, "load", _nothing)
    _replace(os, "closerange", _nothing)


_open_up()
with open(_ZYGOTE, encoding="utf-8") as _file:
    exec(compile(_file.read(), _ZYGOTE, "exec"), {"__name__": "__main__", "__file__": _ZYGOTE})
