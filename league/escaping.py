"""Text of models and users made fit to be shown: whatever would act on a terminal or a reader's eye is spelt out.

Pure. Markup is for others to escape; this is about characters.
"""

from __future__ import annotations


def printable(text: str, *, keep_lines: bool = False) -> str:
    r"""Return `text` with everything that is not printable spelt out (`\x1b`), line feeds too unless kept."""
    kept = "\n" if keep_lines else ""
    return "".join(
        char if char.isprintable() or char in kept else char.encode("unicode_escape").decode("ascii") for char in text
    )
