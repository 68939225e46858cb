"""Run folders made of numbers drawn at random: of any size, and with any text where a model's would be."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from league.storage import RunFolder
from league.types import Row

SETTINGS = "teachers: {teachers}\nstudents: {students}\nseed: 0\n"
PROGRAM = "def f(x):\n    return x + {number}"


def write_run(
    path: Path,
    *,
    steps: int = 3,
    members: int = 2,
    proposals: int = 6,
    attempts: int = 2,
    program: str = PROGRAM,
    text: str = "<answer>\n{number}",
    evolve_every: int = 2,
    kinds: tuple[str, ...] = ("train",),
    extra: Mapping[str, float] | None = None,
) -> Path:
    """Write a run folder and return its path.

    Args:
        path: Of the folder.
        steps: Of the run.
        members: Of each side.
        proposals: Of each teacher a step.
        attempts: At each valid proposal.
        program: Of every proposal; `{number}` is another one in each.
        text: Of every completion, likewise.
        evolve_every: Steps between two births a side.
        kinds: Of the matches, in turn.
        extra: Metrics beside the two entropies.
    """
    rng = np.random.default_rng(0)
    settings = SETTINGS.format(teachers=members, students=members)
    folder = RunFolder.create(path, run_id="synthetic", config=settings, versions={"base": "none"})
    alive = {side: [f"{side}_{slot}" for slot in range(members)] for side in ("teacher", "student")}
    births = [_birth(name, 0, slot, "founder", []) for names in alive.values() for slot, name in enumerate(names)]
    events = [_rating(row["child_id"], "birth", None, 25.0, 8.0) | {"step": 0} for row in births]
    folder.commit(0, {"ratings": events, "lineage": births}, {"seconds": {}})
    born = {"teacher": members, "student": members}
    for step in range(1, steps + 1):
        tables: dict[str, list[Row]] = {"problems": [], "rollouts": [], "matches": [], "ratings": [], "lineage": []}
        order = rng.permutation(members)
        for place, teacher in enumerate(alive["teacher"]):
            student = alive["student"][order[place]]
            _play(tables, rng, (step - 1) * members + place, teacher, student, (proposals, attempts), program, text)
        if step % evolve_every == 0:
            for side, names in alive.items():
                _evolve(tables, rng, side, names, step, born)
        for place, row in enumerate(tables["matches"]):
            row["kind"] = kinds[place % len(kinds)]
        for rows in tables.values():
            for row in rows:
                row["step"] = step
        metrics = {"teacher/entropy": float(rng.random()), "student/entropy": float(rng.random())}
        seconds = {"propose": float(rng.random()), "solve": 1.0}
        folder.commit(step, tables, {**metrics, **(extra or {}), "seconds": seconds})
    folder.close()
    return path


def _play(
    tables: dict[str, list[Row]],
    rng: np.random.Generator,
    match_id: int,
    teacher: str,
    student: str,
    sizes: tuple[int, int],
    program: str,
    text: str,
) -> None:
    proposals, attempts = sizes
    rates = []
    for number in range(proposals):
        proposal_id = f"m{match_id}/p{number}"
        source = program.replace("{number}", str(match_id * proposals + number))
        task = ("deduction", "abduction", "induction")[number % 3]
        valid = number % 5 != 4
        solved = rng.random(attempts) < 0.2 + 0.6 * rng.random() if valid else []
        row = _problem(proposal_id, task, teacher, match_id, source, rng)
        said = text.replace("{number}", str(number))
        tables["rollouts"].append(_rollout(proposal_id, proposal_id, task, "proposer", teacher, match_id, said, "ok"))
        if valid:
            row |= {"valid": True, "solve_rate": float(np.mean(solved))}
            rates.append(row["solve_rate"])
        else:
            row |= {"valid": False, "invalid_reason": "error:NameError", "cell_id": None, "ast_depth": None}
        tables["problems"].append(row)
        tables["rollouts"] += [
            _rollout(f"{proposal_id}/s{seat}", proposal_id, task, "solver", student, match_id, said, verdict)
            | {"seat": seat}
            for seat, verdict in enumerate("ok" if one else "wrong" for one in solved)
        ]
    observed = float(np.mean(rates))
    ids = {"teacher_id": teacher, "teacher_version": 1, "student_id": student, "student_version": 1}
    outcome = {"kind": "train", "expected": 0.5, "outcome": "student" if observed > 0.5 else "teacher"}
    tables["matches"].append({"match_id": match_id, **ids, **outcome, "observed": observed, "n_problems": len(rates)})
    for name in (teacher, student):
        mu, sigma = 25 + 3 * rng.standard_normal(), 2 + rng.random()
        tables["ratings"].append(_rating(name, "update", match_id, float(mu), float(sigma)))


def _evolve(
    tables: dict[str, list[Row]],
    rng: np.random.Generator,
    side: str,
    names: list[str],
    step: int,
    born: dict[str, int],
) -> None:
    slot = int(rng.integers(len(names)))
    child, victim = f"{side}_{born[side]}", names[slot]
    born[side] += 1
    operator = ("svd_mix", "dare", "full_gaussian")[step // 2 % 3]
    tables["lineage"].append(_birth(child, step, slot, operator, [names[(slot + 1) % len(names)]]))
    tables["ratings"].append(_rating(victim, "retire", None, 20.0, 2.0))
    tables["ratings"].append(_rating(child, "birth", None, 25.0, 8.0))
    names[slot] = child


def _birth(name: str, step: int, slot: int, operator: str, parents: list[str]) -> Row:
    made = {"operator": operator, "parents": parents, "parameters": [{"name": "epsilon", "value": 0.1}]}
    scales = {"learning_rate_scale": 1.0, "temperature_scale": 1.0}
    return {"child_id": name, "step": step, "slot": slot, "seed": 1, "adapter_sha256": "0" * 64, **made, **scales}


def _rating(name: str, event: str, match_id: int | None, mu: float, sigma: float) -> Row:
    return {"member_id": name, "event": event, "match_id": match_id, "mu": mu, "sigma": sigma}


def _problem(
    proposal_id: str, task: str, teacher: str, match_id: int, program: str, rng: np.random.Generator
) -> dict[str, Any]:
    structure = {"ast_depth": int(rng.integers(5, 10)), "cyclomatic": int(rng.integers(1, 5))}
    structure |= {"lines": int(rng.integers(2, 12)), "variables": int(rng.integers(1, 6))}
    ids = {"proposal_id": proposal_id, "problem_id": proposal_id, "task": task, "teacher_id": teacher}
    verl = {
        "data_source": "populora",
        "prompt": [],
        "ability": "code",
        "reward_model": {"style": "rule", "ground_truth": ""},
        "extra_info": {"split": "train", "index": 0, "proposal_id": proposal_id},
    }
    shown = {"program": program, "inputs": ["(1,)"], "outputs": ["2"], "n_visible": 0, "message": ""}
    rest = {"teacher_version": 1, "match_id": match_id, "exec_ms": 0.1, "cell_id": int(rng.integers(0, 1024))}
    return {**ids, **structure, **verl, **shown, **rest}


def _rollout(
    rollout_id: str, group_id: str, task: str, role: str, member: str, match_id: int, text: str, verdict: str
) -> dict[str, Any]:
    reward = 1.0 if verdict == "ok" else -0.5
    parts = dict.fromkeys(("validity", "difficulty", "format", "correctness"), 0.0)
    ids = {"rollout_id": rollout_id, "match_id": match_id, "group_id": group_id, "seat": 0, "task": task, "role": role}
    return {
        **ids,
        "member_id": member,
        "version": 1,
        "prompt": [{"role": "user", "content": "prompt"}],
        "prompt_ids": [1, 2, 3],
        "completion_ids": [4, 5, 6],
        "logprobs": [-0.5, -0.5, -0.5],
        "completion": text,
        "reward": reward,
        **{f"reward_{name}": value for name, value in parts.items()},
        "advantage": 0.0,
        "verdict": verdict,
        "finish_reason": "stop",
        "temperature": 1.0,
        "sampler": "none",
    }
