"""The model card of an exported member: front matter for the hub, and what its run's tables say of it.

Pure. Owns the text and its escaping: what a model or a user wrote is shown in code blocks that it cannot leave. Owns no
files (`export`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from league.escaping import printable
from league.standings import Standing
from league.types import Row, Side

_LONGEST_EXAMPLE = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """What is said of a member."""

    standing: Standing
    """As of `step`."""
    version: int
    """Of its weights: steps it has played since its birth."""
    step: int
    """That the weights were saved after."""
    run_id: str
    base: str
    """Name of the base model, without folders of this machine."""
    on_hub: bool
    """Whether `base` is a model of the Hugging Face hub."""
    fields: Mapping[str, Any]
    """Of `adapter_config.json`."""
    sha256: str
    """Of the weights."""
    lineage: Sequence[Row]
    """Rows of the member and all its ancestors, oldest first."""
    caution: float
    """Standard deviations below the mean at which members are compared."""
    example: Row | None
    """A row of the problems table that the member wrote (a teacher) or met (a student)."""


def model_card(export: Export) -> str:
    """Return the text of `README.md`."""
    parts = [_front_matter(export), _title(export), _rating(export), _loading(export), _lineage(export)]
    return "\n".join([*parts, *_example(export), _settings(export)])


def _front_matter(export: Export) -> str:
    values: dict[str, Any] = {"base_model": export.base} if export.on_hub else {}
    values |= {
        "library_name": "peft",
        "pipeline_tag": "text-generation",
        "tags": ["lora", "peft", "populora", "self-play", "reinforcement-learning", "code", export.standing.side.value],
    }
    return f"---\n{yaml.safe_dump(values, sort_keys=False)}---\n"


_LEAGUE = (
    "in which\n"
    "teachers and students, all adapters of that one frozen base, were trained against each other by self-play"
)
_DOES = {
    Side.TEACHER: f"poses programming problems. It is a teacher of a league {_LEAGUE}",
    Side.STUDENT: f"solves programming problems. It is a student of a league {_LEAGUE}",
    Side.AGENT: "poses programming problems and\nsolves them. It was trained on its own problems, by self-play",
}


def _title(export: Export) -> str:
    side, member = export.standing.side, inline(export.standing.member_id)
    return (
        f"# {export.standing.member_id}\n\n"
        f"{member} is a LoRA adapter of {inline(export.base)} that {_DOES[side]}\n"
        f"(run {inline(export.run_id)}, version {export.version}, saved after step {export.step}).\n"
    )


def _rating(export: Export) -> str:
    one = export.standing
    rate = "-" if one.solve_rate is None else f"{one.solve_rate:.3f}"
    good = {Side.TEACHER: "low is good for a teacher", Side.STUDENT: "high is good for a student"}.get(
        one.side, "its own problems: high may mean that they are easy"
    )
    return (
        "## Rating\n\n"
        f"| mu | sigma | mu - {export.caution:g} sigma | won | drawn | lost | solve rate |\n"
        "|---|---|---|---|---|---|---|\n"
        f"| {one.rating.mu:.2f} | {one.rating.sigma:.2f} | {one.bound:.2f} | {one.won} | {one.drawn} | {one.lost} "
        f"| {rate} |\n\n"
        "Ratings compare members of one run only. The solve rate is the mean over the matches it played in training,\n"
        f"at problems made there ({good}); it is no benchmark.\n"
    )


def _loading(export: Export) -> str:
    if export.on_hub:
        base = f"base = AutoModelForCausalLM.from_pretrained({export.base!r})"
        imports = "from transformers import AutoModelForCausalLM"
    else:
        base, imports = f"base = load_base({export.base!r}).model", "from populora_agents.bases import load_base"
    program = f'from peft import PeftModel\n{imports}\n\n{base}\nmodel = PeftModel.from_pretrained(base, "THIS_FOLDER")'
    return f"## Use\n\n{fenced(program, 'python')}\n"


def _lineage(export: Export) -> str:
    lines = ["## Lineage", "", "| member | step of birth | made by | parents |", "|---|---|---|---|"]
    for row in export.lineage:
        parents = ", ".join(inline(parent) for parent in row["parents"]) or "-"
        lines.append(f"| {inline(row['child_id'])} | {row['step']} | {inline(row['operator'])} | {parents} |")
    return "\n".join([*lines, ""])


def _example(export: Export) -> list[str]:
    row = export.example
    if row is None:
        return []
    what = "met" if export.standing.side is Side.STUDENT else "wrote"
    text = f"{row['program']}\n\n# input: {', '.join(row['inputs'][:1])}"
    return [
        f"## A problem that it {what}\n\n"
        f"Step {row['step']}, {row['task']}, solve rate {row['solve_rate']:.2f}. Written by a model; do not run it.\n\n"
        f"{fenced(text[:_LONGEST_EXAMPLE], 'text')}\n"
    ]


def _settings(export: Export) -> str:
    fields = export.fields
    targets = ", ".join(inline(str(name)) for name in fields["target_modules"])
    return (
        "## Settings\n\n"
        f"- rank {fields['r']}, alpha {fields['lora_alpha']}, on {targets}\n"
        f"- sha256 of the weights: `{export.sha256}`\n"
    )


def fenced(text: str, language: str) -> str:
    """Return a code block that its text cannot end, control characters spelt out."""
    body = printable(text, keep_lines=True)
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", body)), default=0))
    return f"{fence}{language}\n{body}\n{fence}"


def inline(text: str) -> str:
    """Return inline code that its text cannot end, also within a table."""
    return "`" + printable(text).replace("`", "'").replace("|", "/") + "`"
