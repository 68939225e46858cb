"""Tables for other libraries: the snippets of the two pages, hostile text, and the data set for verl and TRL."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from scripted import ScriptedBackend, make_base

import league
from league.arena import ProgramArena
from league.config import RunConfig, make_game, resolve
from league.display import Display
from league.engine import League
from league.executors.local import LocalExecutor
from league.options import EvolveOptions, GameOptions, LearnOptions, PlayOptions
from league.run import make_rules
from league.schemas import SCHEMAS
from league.storage import RunFolder, StorageError
from populora_agents.config import NANO
from populora_env.bridges.compute_score import compute_score, trl_reward
from populora_env.verifier import Verifier

PAGE, METRICS = (
    (Path(__file__).parents[2] / "docs" / name).read_text(encoding="utf-8") for name in ("data.md", "metrics.md")
)
SNIPPETS = re.findall(r"```python\n(.*?)```", PAGE + METRICS, re.DOTALL)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run of scripted players, a fifth of whose texts are hostile."""
    config = resolve(
        RunConfig(
            teachers=1,
            students=1,
            steps=2,
            game=GameOptions(seed_problems=24),
            play=PlayOptions(proposal_tokens=512, answer_tokens=256),
            learn=LearnOptions(lora_rank=2, alpha=4.0),
            evolve=EvolveOptions(evolution=False),
        ),
        NANO,
        {"svd_perturb": True},
    )
    folder = RunFolder.create(tmp_path_factory.mktemp("runs") / "run", run_id="r", config="", versions={})
    with Verifier() as verifier, Display(2) as display:
        base, backend = make_base(), ScriptedBackend(make_game(config, None))
        arena = ProgramArena(config, base, LocalExecutor(config, base, verifier, backend))
        League(make_rules(config), arena, folder, display).run()
    return folder.path


@pytest.mark.parametrize("snippet", SNIPPETS, ids=range(len(SNIPPETS)))
def test_the_pages_snippets_run(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snippet: str) -> None:
    for line in re.findall(r"^(?:import|from) (.*)$", snippet, re.MULTILINE):
        for library in line.split(" import ")[0].split(", "):
            pytest.importorskip(library)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "first").symlink_to(run)
    exec(compile(snippet, "snippet", "exec"), {})


def test_the_page_names_every_column_of_every_table() -> None:
    assert len(SNIPPETS) == 6
    for name, schema in SCHEMAS.items():
        (line,) = [line for line in PAGE.splitlines() if line.startswith(f"| `{name}` |")]
        assert set(schema.names) - {"run_id", "step"} <= set(re.findall(r"`(\w+)`", line)), name


def test_columns_are_read_as_asked_for(run: Path) -> None:
    whole = league.load(run, "rollouts")
    assert whole.schema.names == SCHEMAS["rollouts"].names
    for columns in (["reward", "step"], ["step"], ["completion"]):
        assert league.load(str(run), "rollouts", columns).to_pydict() == whole.select(columns).to_pydict()
    with pytest.raises(ValueError, match=r"table 'matches' has no column \['colour'\], its columns are \['run_id'"):
        league.load(run, "matches", ["colour"])
    with pytest.raises(ValueError, match="`name` must be one of"):
        league.load(run, "players")
    with pytest.raises(StorageError, match="is no run folder"):
        league.load(run / "matches", "matches")
    with pytest.raises(AttributeError, match="no attribute 'store'"):
        importlib.import_module("league").store  # noqa: B018


def test_hostile_text_survives_the_way_into_each_library(run: Path) -> None:
    table = league.load(run, "rollouts")
    texts = table["completion"].to_pylist()
    assert r"[2J\x00\ud800 junk".join(["\x1b", ""]) in texts
    assert table.to_pandas()["completion"].tolist() == texts
    datasets = pytest.importorskip("datasets")
    assert list(datasets.Dataset(table)["completion"]) == texts


def test_polars_and_duckdb_read_hostile_text(run: Path) -> None:
    table = league.load(run, "rollouts")
    polars, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    texts = table["completion"].to_pylist()
    assert polars.from_arrow(table)["completion"].to_list() == texts
    with duckdb.connect() as connection:
        assert connection.from_arrow(table).project("completion").fetchall() == [(text,) for text in texts]


def test_the_problems_are_a_data_set_for_verl_and_trl(run: Path, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    pq.write_table(league.load(run, "problems").filter(pc.field("valid")), tmp_path / "problems.parquet")
    data = datasets.load_dataset("parquet", data_files=str(tmp_path / "problems.parquet"), cache_dir=str(tmp_path))
    rows: list[dict[str, Any]] = list(data["train"])
    assert rows
    for row in rows:
        assert [set(message) for message in row["prompt"]] == [{"role", "content"}] * len(row["prompt"])
        assert row["prompt"][-1]["role"] == "user"
        assert row["reward_model"]["style"] == "rule"
        assert row["data_source"] == f"populora/{row['task']}"
        assert row["ability"] == "code"
        assert row["extra_info"]["proposal_id"] == row["proposal_id"]
    assert len({row["extra_info"]["index"] for row in rows}) == len(rows)
    row = next(row for row in rows if row["task"] == "deduction")
    answer = f"```output\n{row['outputs'][0]}\n```"
    truth = row["reward_model"]["ground_truth"]
    assert compute_score(row["data_source"], answer, truth, row["extra_info"], style="chat") == 1.0
    trl = pytest.importorskip("trl")
    assert trl.data_utils.is_conversational(row)
    said = [[{"role": "assistant", "content": answer}]]
    assert trl_reward(prompts=[row["prompt"]], completions=said, reward_model=[row["reward_model"]]) == [1.0]
