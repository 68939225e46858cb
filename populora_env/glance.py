"""A program judged by its words: most need no syntax tree.

Owns a reading of the text that is strict enough to say what the checks of the tree would say. What it is not sure of
is left to them. It does not know whether Python takes the text for a program at all: that comes out when it runs.
"""

from __future__ import annotations

import keyword
import re
from typing import Final

from populora_env import allowlist
from populora_env.sharing import FOREIGN, METHODS
from populora_env.source import MAX_DEPTH, MAX_SOURCE_CHARS

_TEXT: Final = re.compile(
    r"""def[ ](?: f | (?P<helper>[a-z][a-z0-9_]*) )\(
    (?: (?<=\n)def[ ]f\(                                 # after a helper
      | (?!(?:f|(?P=helper))\b|f\b)[A-Za-z][A-Za-z0-9_]*(?!['"])  # a word; before a quote it would be a prefix
      | (?:f|(?P=helper))\(                              # what is defined is only called
      | \.[a-z_]+\(                                     # an attribute is only called
      | [0-9]+(?:\.[0-9]+)?(?![A-Za-z0-9_.])
      | '[ !#-&(-\[\]-~]*'(?!['"]) | "[ !#-&(-\[\]-~]*"(?!['"])
      | \{(?=\}|(?:'[a-z]*'|[a-z]+|[0-9]+):[ ])         # a dict: behind the first word of a set there is no colon
      | [ \n()\[\],:+\-*/%<>=!&|^~}]
    )*+""",
    re.VERBOSE,
)
_WORDS: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ATTRIBUTES: Final = re.compile(r"\.([a-z_]+)")
_KEYWORDS: Final = frozenset({"and", "break", "continue", "def", "elif", "else", "for", "if", "in", "not", "or"}) | {
    *("pass", "return", "while", "False", "None", "True")
}
_CLOSER_LOOK: Final = (
    (frozenset(keyword.kwlist) - _KEYWORDS) | {"case", "match"} | FOREIGN | allowlist.SET_MAKERS | allowlist.KEY_VIEWS
)
"""Words that may mean something to one of the checks."""
_OBJECTS: Final = allowlist.ADDRESSED | {"for"}
"""Words that make objects which are shown with their address; `for` may make a generator."""
_DEEPER: Final = re.compile(r"[-+*/%<>=!&|^~(\[{.]|\b(?:if|elif|for|while|and|or|not|in)\b")
_LEVELS: Final = 3
"""Levels of a syntax tree that one of these makes at most: `a[b:c, d]` is a tuple and a slice in a subscript."""
_OTHER_LEVELS: Final = 10
"""Levels that need none of these: module, statement, tuple without brackets, parts of an argument, a name."""


def needs_no_tree(program: str) -> bool:
    """Return whether a text, if it is a program, is one of which no check of a syntax tree has anything to say.

    It is then within the bounds of `source`, defines `f`, is admitted, leaves nothing in its process, and hangs neither
    on hashes nor on addresses nor on what an interpreter decides.
    """
    text = _TEXT.fullmatch(program) if len(program) <= MAX_SOURCE_CHARS else None
    if text is None or program.count("def ") != (1 if text["helper"] is None else 2):
        return False
    if text["helper"] is not None and "\ndef f(" not in program:
        return False
    words = set(_WORDS.findall(program))
    if not words.isdisjoint(_CLOSER_LOOK) or not METHODS.issuperset(_ATTRIBUTES.findall(program)):
        return False
    if ("%" in program or not words.isdisjoint(allowlist.TEXT_MAKERS)) and not words.isdisjoint(_OBJECTS):
        return False
    return _LEVELS * len(_DEEPER.findall(program)) + _OTHER_LEVELS <= MAX_DEPTH
