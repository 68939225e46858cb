"""What children are worth: every operator on trained students, before training and while they train on.

    python benchmarks/operators_on_nano.py --out DIR [--base B] [--seeds N] [--updates N ...] [--operators NAME ...]
    python benchmarks/operators_on_nano.py --out DIR --report [--plot FILE]

For each seed two students begin fresh and train on problems of their own (deduction, depth 3 and 4, as in
`nano_reinforcement`); the one that was right more often in its last five updates is the better parent. Every operator
makes a child of them (mutations of the better one), which trains on with a new optimiser. All children of a seed
are posed the same problems and sampled with the same draws. Each is measured at every number of `--updates`: the
share of held-out problems it solves, at temperature 1 and greedily, and the share of its proposals at temperature 1
that are valid, a skill that is not trained here and shows what an operator breaks. `copy_parent` is what training alone
does.

One (operator, seed) is one line of DIR/results.jsonl. The command may be stopped and called again, and several may
share DIR, each with operators of its own: what is there is not done again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from nano_reinforcement import N_HELD_OUT, fresh_problems, posed, rollouts_of

from league import seeds
from league.operators import OPERATORS, apply, find_operator
from populora_agents.backends.torch import TorchBackend
from populora_agents.bases import Base, load_base
from populora_agents.lora import Adapter, fresh_adapter, load_adapter, save_adapter
from populora_agents.nano.evaluate import proposing
from populora_agents.stack import AdapterStack
from populora_agents.suites import Item, Suite
from populora_agents.trainer import Trainer
from populora_agents.types import AdapterVersion, Completion, Request
from populora_env.config import GameConfig
from populora_env.judging import judge_attempts, judge_proposals
from populora_env.types import Observation
from populora_env.verifier import Verifier

PROBLEMS, ATTEMPTS = 32, 8
LAST = 5
"""Updates over which parents are compared."""
RESULTS, SETTINGS, PARENTS = "results.jsonl", "settings.json", "parents"
MEMBER = "student"
BASELINES = ("copy_parent", "linear_0_5")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All that the figures depend on."""

    base: str
    updates: tuple[int, ...]
    """Of a child, at which it is measured."""
    parent_updates: int
    held_out: int
    """Problems, answered once at temperature 1 and once greedily."""
    proposals: int
    """Of each task, for validity."""


class Student:
    """One member, alone on a base: it takes on adapters, learns, and is measured."""

    def __init__(self, base: Base, verifier: Verifier, settings: Settings) -> None:
        """Make room for one adapter on the base."""
        self.base = base
        self._verifier = verifier
        self._settings = settings
        self._stack = AdapterStack(base.model, base.preset.lora, slots=1)
        self._version = 0
        self._backend = TorchBackend(base, self._stack, lambda _: (0, self._version))
        self._trainer = Trainer(self._stack)
        self._config = GameConfig(
            style=base.preset.style, solver_seats=ATTEMPTS, induction_inputs=base.preset.induction_inputs
        )
        problems = fresh_problems(seeds.generator(0, 0, "held out"), settings.held_out, "held_out")
        self._suite = Suite(name="medium", items=tuple(Item(problem=problem, labels={}) for problem in problems))

    def fresh(self, seed: int, place: int) -> Adapter:
        """Return an adapter that is the base still."""
        generator = torch.Generator().manual_seed(seeds.seed(seed, 0, "fresh", str(place)))
        return fresh_adapter(self.base.model, self.base.preset.lora, generator)

    def become(self, adapter: Adapter) -> None:
        """Take on an adapter, with an optimiser that knows nothing of the last one."""
        self._stack.load(0, adapter)
        self._trainer = Trainer(self._stack)

    @property
    def adapter(self) -> Adapter:
        """What was learnt."""
        return self._stack.adapter(0)

    def learn(self, seed: int, update: int, purpose: str) -> float:
        """Do one update on problems that seed, number and purpose decide; return the share of right answers."""
        fresh = fresh_problems(seeds.generator(seed, update, "problems", purpose), PROBLEMS, "train")
        rounds = [posed(problem, self._config) for problem in fresh]
        judge_proposals(rounds, self._verifier)
        rounds = [one for one in rounds if not one.settled]
        seats = [one for one in rounds for _ in range(ATTEMPTS)]
        asked = [one.solver_observation() for one in seats]
        drawn = seeds.generator(seed, update, "sampling", purpose)
        said = self._say(asked, 1.0, self.base.preset.max_new_tokens_answer, drawn)
        for one, completion in zip(seats, said, strict=True):
            one.attempt(completion.text)
        judge_attempts(rounds, self._verifier)
        rewards = [reward for one in rounds for reward in one.result().solver_rewards]
        groups = [str(place // ATTEMPTS) for place in range(len(seats))]
        rollouts = rollouts_of([MEMBER] * len(seats), groups, ["solver/deduction"] * len(seats), said, rewards)
        rates = {MEMBER: self.base.preset.student_learning_rate}
        self._trainer.update(rollouts, self._trainer.advantages(rollouts), {MEMBER: 0}, rates)
        self._version += 1
        return float(np.mean([reward == self._config.rewards.correct for reward in rewards]))

    def measure(self) -> dict[str, float]:
        """Return the shares solved at temperature 1 and greedily, and of valid and of distinct proposals."""
        observations, limit = self._suite.observations(self._config), self.base.preset.max_new_tokens_answer
        figures = {}
        for name, temperature in (("solve_rate", 1.0), ("greedy", 0.0)):
            solved = self._suite.judge(self._speak(observations, temperature, limit), self._verifier, self._config)
            figures[name] = float(np.mean(solved))
        references = seeds.generator(0, 0, "references")
        proposed = proposing(self.base, self._speak, self._verifier, self._config, references, self._settings.proposals)
        return figures | {name: proposed[name] for name in ("valid", "distinct")}

    def _say(
        self, asked: Sequence[Observation], temperature: float, limit: int, drawn: np.random.Generator
    ) -> list[Completion]:
        adapter = AdapterVersion(member_id=MEMBER, version=self._version)
        return self._backend.generate(
            [
                Request(
                    adapter=adapter,
                    messages=observation.messages,
                    max_new_tokens=limit,
                    temperature=temperature,
                    seed=int(seed),
                )
                for observation, seed in zip(asked, drawn.integers(2**62, size=len(asked)), strict=True)
            ]
        )

    def _speak(
        self, observations: Sequence[Observation], temperature: float, max_new_tokens: int, begin: str = ""
    ) -> list[str]:
        """Do as `suites.Speak` says, with the same draws in every measurement."""
        del begin
        drawn = seeds.generator(0, 0, "measuring")
        return [said.text for said in self._say(observations, temperature, max_new_tokens, drawn)]


def run(student: Student, settings: Settings, out: Path, operators: Sequence[str], wanted: Sequence[int]) -> None:
    """Do what results.jsonl lacks, and add a line for each (operator, seed)."""
    done = {(line["operator"], line["seed"]) for line in read(out)}
    for seed in wanted:
        missing = [name for name in operators if (name, seed) not in done]
        if not missing:
            continue
        parents = parents_of(student, settings, out, seed)
        for name in missing:
            began = time.perf_counter()
            generator = torch.Generator().manual_seed(seeds.seed(seed, 0, "operator", name))
            child = apply(name, parents[: find_operator(name).arity], generator)
            line = {"operator": name, "seed": seed, **train(student, settings, child, seed)}
            add(out, line | {"seconds": round(time.perf_counter() - began, 1)})


def train(student: Student, settings: Settings, child: Adapter, seed: int) -> dict[str, Any]:
    """Return what a child can do at each number of updates."""
    student.become(child)
    measured = {}
    for update in range(max(settings.updates) + 1):
        if update in settings.updates:
            measured[update] = student.measure()
        if update < max(settings.updates):
            student.learn(seed, update, "child")
    names = measured[settings.updates[0]]
    return {name: [measured[update][name] for update in settings.updates] for name in names}


def parents_of(student: Student, settings: Settings, out: Path, seed: int) -> list[Adapter]:
    """Return the two parents of a seed, the better one first; train them where they are not on disk."""
    folders = [out / PARENTS / f"seed_{seed}" / name for name in ("better", "worse")]
    if not all((folder / "adapter_config.json").is_file() for folder in folders):
        trained = []
        for place in range(2):
            student.become(student.fresh(seed, place))
            right = [student.learn(seed, update, f"parent {place}") for update in range(settings.parent_updates)]
            trained.append((float(np.mean(right[-LAST:])), student.adapter, student.measure()))
        trained.sort(key=lambda one: -one[0])
        for folder, (right_share, adapter, figures) in zip(folders, trained, strict=True):
            save_adapter(folder, adapter, student.base.preset.lora, settings.base)
            line = {"operator": f"{folder.name} parent", "seed": seed, "right": right_share}
            add(out, line | {name: [value] for name, value in figures.items()})
    return [load_adapter(folder)[0] for folder in folders]


def add(out: Path, line: dict[str, Any]) -> None:
    """Append one line, and show it."""
    text = json.dumps(line)
    with (out / RESULTS).open("a", encoding="utf-8") as file:
        file.write(text + "\n")
    print(text, flush=True)


def read(out: Path) -> list[dict[str, Any]]:
    """Return the lines that are there."""
    path = out / RESULTS
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.is_file() else []


def open_folder(out: Path, settings: Settings) -> None:
    """Make the folder, or check that it holds results of the same settings.

    Raises:
        ValueError: It holds others.
    """
    out.mkdir(parents=True, exist_ok=True)
    path, mine = out / SETTINGS, json.loads(json.dumps(asdict(settings)))
    if path.is_file():
        theirs = json.loads(path.read_text(encoding="utf-8"))
        if theirs != mine:
            odd = min(name for name in mine if theirs.get(name) != mine[name])
            raise ValueError(
                f"{out} holds results with {odd} {theirs.get(odd)!r}, not {mine[odd]!r}: take another --out"
            )
    path.write_text(json.dumps(mine, indent=2) + "\n", encoding="utf-8")


def table(lines: Sequence[dict[str, Any]], updates: Sequence[int]) -> str:
    """Return means over the seeds, in percent, as a Markdown table; operators in the order of their last solve rate."""
    curves = by_operator(lines)
    children = sorted((name for name in curves if not name.endswith(" parent")), key=last(curves))
    ends = (updates[0], updates[-1])
    head = ["", *(f"solves after {update}" for update in updates), *(f"less `{name}`" for name in BASELINES)]
    head += [f"{what} after {update}" for what in ("greedily", "valid") for update in ends]
    rows = [head, ["---"] * len(head)]
    for name in [name for name in curves if name not in children] + children:
        solves = [f"{100 * value:.1f}" for value in mean(curves[name], "solve_rate")]
        rest = [[f"{100 * value:.1f}" for value in mean(curves[name], key)] for key in ("greedy", "valid")]
        if name in children:
            row = [f"`{name}`", *solves, *(beside(curves, name, other) for other in BASELINES)]
            row += [value for values in rest for value in (values[0], values[-1])]
        else:
            blank = [""] * (len(updates) - 1 + len(BASELINES))
            row = [name, *solves, *blank, *(cell for values in rest for cell in (values[0], ""))]
        rows.append(row)
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def last(curves: dict[str, list[dict[str, Any]]]) -> Callable[[str], float]:
    """Return a key that sorts operators by their last solve rate, the highest first."""
    return lambda name: -mean(curves[name], "solve_rate")[-1]


def beside(curves: dict[str, list[dict[str, Any]]], name: str, other: str) -> str:
    """Return the last solve rate less that of `other` on the same seed, in points: mean, and least to largest."""
    theirs = {line["seed"]: line["solve_rate"][-1] for line in curves.get(other, [])}
    shared = [line for line in curves[name] if line["seed"] in theirs]
    if not shared or name == other:
        return ""
    gaps = [100 * (line["solve_rate"][-1] - theirs[line["seed"]]) for line in shared]
    return f"{np.mean(gaps):+.1f} ({min(gaps):+.1f} to {max(gaps):+.1f})"


def by_operator(lines: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return the lines of each operator and of both parents."""
    curves: dict[str, list[dict[str, Any]]] = {}
    for line in sorted(lines, key=lambda line: line["seed"]):
        curves.setdefault(line["operator"], []).append(line)
    return curves


def mean(lines: Sequence[dict[str, Any]], name: str) -> list[float]:
    """Return a figure's mean over the seeds, one value a measurement."""
    return [float(value) for value in np.mean([line[name] for line in lines], axis=0)]


def draw(lines: Sequence[dict[str, Any]], updates: Sequence[int], path: Path) -> None:
    """Draw the solve rate over updates, a panel an operator, with both baselines in each; thin lines are seeds."""
    from matplotlib.figure import Figure

    curves = by_operator(lines)
    children = [name for name in curves if not name.endswith(" parent")]
    names = sorted((name for name in children if name not in BASELINES), key=last(curves)) or children
    columns = min(5, len(names))
    rows = -(-len(names) // columns)
    figure = Figure(figsize=(2.2 * columns, 2.1 * rows + 0.5), layout="constrained")
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flatten()
    level = mean(curves["better parent"], "solve_rate")[0] if "better parent" in curves else None
    for panel, name in zip(panels, names, strict=False):
        for line in curves[name]:
            panel.plot(updates, line["solve_rate"], color="C0", linewidth=0.6, alpha=0.5)
        panel.plot(updates, mean(curves[name], "solve_rate"), color="C0", marker="o", markersize=3, label="child")
        for colour, baseline in zip(("0.2", "C1"), BASELINES, strict=True):
            if baseline in curves:
                values = mean(curves[baseline], "solve_rate")
                panel.plot(updates, values, color=colour, linestyle="--", linewidth=1, label=baseline)
        if level is not None:
            panel.axhline(level, color="0.6", linewidth=0.8, linestyle=":", label="better parent")
        panel.set_title(name, fontsize=9)
        panel.set_xticks(list(updates))
    for panel in panels[len(names) :]:
        panel.set_visible(False)
    figure.supxlabel("updates of the child", fontsize=9)
    figure.supylabel("share solved, temperature 1", fontsize=9)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, or report; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of the results")
    parser.add_argument("--base", default="nano", help="base model in the compact style (default: nano)")
    parser.add_argument("--seeds", type=int, default=3, help="seeds 0 to N - 1 (default: 3)")
    parser.add_argument("--operators", nargs="+", default=list(OPERATORS), help="names or paths (default: all)")
    parser.add_argument(
        "--updates", nargs="+", type=int, default=[0, 5, 10, 20], help="when children are measured (default: 0 5 10 20)"
    )
    parser.add_argument("--parent-updates", type=int, default=30, help="training of the parents (default: 30)")
    parser.add_argument("--held-out", type=int, default=N_HELD_OUT, help=f"problems (default: {N_HELD_OUT})")
    parser.add_argument("--proposals", type=int, default=40, help="proposals a task (default: 40)")
    parser.add_argument("--threads", type=int, default=1, help="threads of torch (default: 1)")
    parser.add_argument("--report", action="store_true", help="only print the table of what is there")
    parser.add_argument("--plot", type=Path, help="with --report: where to draw, .svg or .png; needs matplotlib")
    given = parser.parse_args(arguments)
    if min(given.seeds, given.parent_updates, given.held_out, given.proposals, given.threads) < 1:
        parser.error("numbers must be at least 1")
    if min(given.updates) < 0 or sorted(set(given.updates)) != given.updates:
        parser.error("--updates must rise")
    if given.report:
        lines, settings = read(given.out), json.loads((given.out / SETTINGS).read_text(encoding="utf-8"))
        print(table(lines, settings["updates"]))
        if given.plot and lines:
            draw(lines, settings["updates"], given.plot)
        return 0
    torch.set_num_threads(given.threads)
    base = load_base(given.base)
    settings = Settings(
        base=base.name,
        updates=tuple(given.updates),
        parent_updates=given.parent_updates,
        held_out=given.held_out,
        proposals=given.proposals,
    )
    try:
        for name in given.operators:
            find_operator(name)
        open_folder(given.out, settings)
    except ValueError as error:
        parser.error(str(error))
    with Verifier() as verifier:
        run(Student(base, verifier, settings), settings, given.out, given.operators, range(given.seeds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
