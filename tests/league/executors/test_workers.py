"""Workers as plain objects: a fresh one answers the same call with the same bits, whatever another held before."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from scripted import make_base, save_base

from league.config import RunConfig, resolve
from league.executors.ledger import Ledger, Place
from league.executors.types import ExecutorError
from league.executors.workers import JudgeWorker, RolloutWorker, TrainWorker, WorkerPlan
from league.learning import lora_config
from league.options import LearnOptions, MachineOptions
from populora_agents.config import NANO
from populora_agents.lora import fresh_adapter
from populora_agents.types import AdapterVersion, DivergedError, Request, Rollout, UpdateReport
from populora_env.config import VerifierConfig
from populora_env.types import Message

NAMES = ("teacher_0", "teacher_1", "student_0")


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> WorkerPlan:
    base = save_base(tmp_path_factory.mktemp("base"))
    learn = LearnOptions(lora_rank=2, alpha=4.0, teacher_learning_rate=0.01, student_learning_rate=0.01)
    config = RunConfig(teachers=2, students=1, learn=learn, machine=MachineOptions(threads=1))
    return WorkerPlan(config=resolve(config, NANO, {"svd_perturb": True}), base=str(base), new_trainer=None)


@pytest.fixture
def ledger(plan: WorkerPlan, tmp_path: Path) -> Ledger:
    ledger = Ledger(tmp_path / "exchange", lora_config(plan.config), plan.base, plan.config.stack_slots)
    for slot in range(3):
        generator = torch.Generator().manual_seed(slot)
        ledger.load(slot, fresh_adapter(make_base().model, lora_config(plan.config), generator))
    return ledger


def rollouts(step: int) -> list[Rollout]:
    return [
        Rollout(
            member_id=name,
            batch="b",
            group_id=f"{name}{step}",
            prompt_ids=(65, 66),
            token_ids=(67 + step, 68 + place),
            logprobs=(-1.0, -2.0),
            reward=float(place),
        )
        for name in NAMES[:2]
        for place in range(3)
    ]


def update(worker: TrainWorker, ledger: Ledger, step: int, *, note: bool = True, bad: bool = False) -> Any:
    lesson = rollouts(step)
    if bad:
        lesson[0] = replace(lesson[0], logprobs=(float("nan"), 0.0))
    share = {name: (slot, ledger.place(slot), ledger.fresh(slot)) for slot, name in enumerate(NAMES[:2])}
    report = worker.update(lesson, worker.advantages(lesson), dict.fromkeys(NAMES, 0.01), share)
    if note:
        ledger.learnt({slot: target for slot, _, target in share.values()})
    return report, {Path(target): slot for slot, _, target in share.values()}


def written(targets: dict[Path, int]) -> dict[tuple[int, str], bytes]:
    return {(slot, file.name): file.read_bytes() for path, slot in targets.items() for file in path.iterdir()}


def test_a_trainer_made_again_goes_on_from_the_files_bit_for_bit(plan: WorkerPlan, ledger: Ledger) -> None:
    first = TrainWorker(plan)
    report, targets = update(first, ledger, 1)
    assert isinstance(report, UpdateReport)
    assert set(report.members) == set(NAMES[:2])
    one = written(update(first, ledger, 2, note=False)[1])
    assert one != written(targets)
    assert written(update(first, ledger, 2, note=False)[1]) == one, "asked twice, it begins with the files again"
    assert written(update(TrainWorker(plan), ledger, 2, note=False)[1]) == one


def test_a_birth_clears_the_moments_that_a_trainer_holds(plan: WorkerPlan, ledger: Ledger) -> None:
    worker = TrainWorker(plan)
    update(worker, ledger, 1)
    for slot in (0, 1):
        ledger.reset_moments(slot)
    assert written(update(worker, ledger, 2, note=False)[1]) == written(
        update(TrainWorker(plan), ledger, 2, note=False)[1]
    )


def test_divergence_is_an_answer_and_survives_pickling(plan: WorkerPlan, ledger: Ledger) -> None:
    error = pickle.loads(pickle.dumps(update(TrainWorker(plan), ledger, 1, note=False, bad=True)[0]))
    assert isinstance(error, DivergedError)
    assert error.members == ("teacher_0",)
    assert "log-probabilities are not finite" in str(error)


def test_a_rollout_worker_speaks_with_the_weights_that_the_call_names(plan: WorkerPlan, ledger: Ledger) -> None:
    request = Request(
        adapter=AdapterVersion(member_id="teacher_0", version=3),
        messages=(Message(role="user", content="ab"),),
        max_new_tokens=8,
        seed=5,
    )

    def say(worker: RolloutWorker) -> Any:
        return worker.generate([request], {"teacher_0": (0, 3)}, {0: ledger.place(0).weights})[0].logprobs

    worker = RolloutWorker(plan)
    before = say(worker)
    assert say(worker) == before
    update(TrainWorker(plan), ledger, 1)
    assert say(worker) != before
    assert say(worker) == say(RolloutWorker(plan))
    with pytest.raises(ValueError, match="at version 3, not at 4"):
        worker.generate(
            [replace(request, adapter=AdapterVersion(member_id="teacher_0", version=4))], {"teacher_0": (0, 3)}, {}
        )


def test_a_node_that_does_not_see_the_run_folder_says_so(plan: WorkerPlan, tmp_path: Path) -> None:
    with pytest.raises(ExecutorError, match="the run folder must lie where all nodes do"):
        RolloutWorker(plan).generate([], {}, {0: str(tmp_path / "nowhere")})


def test_moments_that_are_not_one_row_a_slot_are_refused(plan: WorkerPlan) -> None:
    assert set(TrainWorker(plan).row_shapes()) == {"first", "second", "counts"}

    class Odd:
        def state_dict(self) -> dict[str, torch.Tensor]:
            return {"loss": torch.tensor(1.0)}

    worker = TrainWorker(replace(plan, new_trainer=lambda *_: Odd()))  # type: ignore[arg-type,return-value]
    with pytest.raises(ExecutorError, match="'loss' of shape"):
        worker.row_shapes()


def test_a_judge_has_the_verifiers_layers_and_its_own_process() -> None:
    judge = JudgeWorker(VerifierConfig())
    assert judge.check_proposals([], None) == []
    assert judge.check_answers([], None) == []
    assert judge.layers()


def test_a_place_without_moments_names_none(ledger: Ledger) -> None:
    assert ledger.place(2) == Place(weights=ledger.place(2).weights, moments=None)
