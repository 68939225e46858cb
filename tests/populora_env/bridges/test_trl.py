"""One seat as TRL's environment, driven as TRL drives it; with TRL installed, by its trainer."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from populora_env.bridges.trl import SeatEnvironment, environment_factory, rows
from populora_env.prompts import get_style
from populora_env.types import Answer, Task

ROOT = Path(__file__).parents[3]
ONE = "```python\ndef f(a):\n    return a + 1\n```\n```input\n(1,)\n```"


@pytest.fixture(scope="module")
def make() -> Callable[[], SeatEnvironment]:
    return environment_factory("solver", proposer=lambda _: ONE)


def answer(text: str) -> str:
    return get_style("chat").write_answer(Answer(task=Task.DEDUCTION, text=text))


def test_a_group_meets_one_problem_and_each_rollout_has_its_own_reward(make: Callable[[], SeatEnvironment]) -> None:
    row = rows(1, ["deduction"])[0]
    group = [make() for _ in range(3)]
    prompts = {environment.reset(**row) for environment in group}
    assert len(prompts) == 1
    assert "return a + 1" in prompts.pop()
    for environment, text in zip(group, (answer("2"), answer("3"), "two"), strict=True):
        assert environment.submit(text) == "Handed in."
    assert [environment.get_reward() for environment in group] == [1.0, -0.5, -1.0]


def test_nobody_answers_twice(make: Callable[[], SeatEnvironment]) -> None:
    environment = make()
    environment.reset(seed=0, task="deduction")
    environment.submit(answer("3"))
    environment.submit(answer("2"))
    assert environment.get_reward() == -0.5
    environment.reset(seed=1, task="deduction")
    environment.submit(answer("2"))
    assert environment.get_reward() == environment.get_reward() == 1.0


def test_silence_is_malformed(make: Callable[[], SeatEnvironment]) -> None:
    environment = make()
    environment.reset(seed=0, task="deduction")
    assert environment.get_reward() == -1.0


def test_the_proposers_seat_is_paid_by_its_solvers() -> None:
    answers = cycle([answer("2"), answer("3")])
    environment = environment_factory("proposer", solvers=lambda _: next(answers), solver_seats=4)()
    assert "Invent a new problem" in environment.reset(seed=3, task="deduction")
    environment.submit(ONE)
    assert environment.get_reward() == 0.5
    environment.reset(seed=3, task="deduction")
    environment.submit("no problem")
    assert environment.get_reward() == -1.0


def test_rows_go_through_the_tasks_with_a_seed_each() -> None:
    made = rows(4, ["deduction", "induction"], seed=7)
    assert [(row["seed"], row["task"]) for row in made] == [
        (7, "deduction"),
        (8, "induction"),
        (9, "deduction"),
        (10, "induction"),
    ]


def test_mistakes_are_named(make: Callable[[], SeatEnvironment]) -> None:
    with pytest.raises(ValueError, match="columns `seed` and `task`"):
        make().reset(prompt="x")
    with pytest.raises(ValueError, match="its task stands in its row"):
        environment_factory(tasks=("deduction",))


def test_the_only_tool_is_submit(make: Callable[[], SeatEnvironment]) -> None:
    names = {name for name, _ in inspect.getmembers(type(make()), inspect.isfunction) if name[0] != "_"}
    assert names == {"reset", "get_reward", "submit"}


@pytest.mark.filterwarnings("ignore")
def test_trl_trains_nano_with_the_environment_and_with_the_reward_function(tmp_path: Any) -> None:
    trl = pytest.importorskip("trl", reason="needs TRL, in an environment of its own (docs/bridges.md)")
    datasets = pytest.importorskip("datasets", reason="needs TRL, in an environment of its own (docs/bridges.md)")
    from transformers import AutoTokenizer

    from populora_env.bridges.compute_score import trl_reward

    nano = str(ROOT / "populora_agents/nano/weights/nano-3")
    tokenizer = AutoTokenizer.from_pretrained(nano)
    tokenizer.chat_template = (Path(trl.__file__).parent / "chat_templates" / "qwen3.jinja").read_text()
    settings = {
        "output_dir": str(tmp_path),
        "max_steps": 1,
        "num_generations": 2,
        "per_device_train_batch_size": 2,
        "max_completion_length": 8,
        "report_to": [],
        "use_cpu": True,
    }
    truth = (
        '{"problem_id": "0", "task": "deduction", "program": "def f(a):\\n    return a\\n", "inputs": ["(1,)"], '
        '"outputs": ["1"], "message": "", "n_visible": 0}'
    )
    fixed = datasets.Dataset.from_list([{"prompt": "1 + 1", "reward_model": {"ground_truth": truth}}] * 2)
    trainer = trl.GRPOTrainer(
        model=nano,
        reward_funcs=trl_reward,
        train_dataset=fixed,
        processing_class=tokenizer,
        args=trl.GRPOConfig(**settings),
    )
    trainer.train()
    assert trainer.state.log_history[0]["rewards/trl_reward/mean"] in (-1.0, -0.5)
    trainer = trl.GRPOTrainer(
        model=nano,
        environment_factory=environment_factory("solver", style="compact"),
        train_dataset=datasets.Dataset.from_list(rows(2, ["deduction"])),
        processing_class=tokenizer,
        args=trl.GRPOConfig(**settings),
    )
    trainer.train()
    assert trainer.state.log_history[0]["rewards/SeatEnvironment/mean"] == -1.0
