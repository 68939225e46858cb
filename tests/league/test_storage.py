"""The run folder: what is visible when, and what happens on bad disks."""

from __future__ import annotations

import hashlib
import json
import os
import resource
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from league import storage
from league.schemas import SCHEMA_VERSION
from league.storage import (
    RunFolder,
    StorageError,
    committed_steps,
    read_metrics,
    read_rows,
    read_table,
    refuse_existing,
)


def rating(step: int, name: str = "teacher_0") -> dict[str, Any]:
    return {"step": step, "match_id": None, "member_id": name, "mu": 25.0, "sigma": 8.0, "event": "birth"}


def make_run(path: Path) -> RunFolder:
    return RunFolder.create(path, run_id="r1", config="seed: 0\n", versions={"python": "3.11"})


def test_a_step_comes_back_in_order_with_its_run_id(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    for step in (0, 2, 10):
        run.commit(step, {"ratings": [rating(step, "a"), rating(step, "b")], "matches": []}, {"seconds": {}})
    rows = read_rows(run.path, "ratings")
    assert [(row["step"], row["member_id"]) for row in rows] == [(s, m) for s in (0, 2, 10) for m in "ab"]
    assert {row["run_id"] for row in rows} == {"r1"}
    assert committed_steps(run.path) == [0, 2, 10]
    assert read_table(run.path, "matches").num_rows == 0
    assert json.loads((run.path / "versions.json").read_text()) == {"python": "3.11", "run_id": "r1"}


def test_files_are_zstd_parquet_that_name_their_schema_version(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    run.commit(0, {"ratings": [rating(0)]}, {})
    file = pq.ParquetFile(run.path / "ratings" / "step=0" / "part-0.parquet")
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"
    assert file.schema_arrow.metadata[b"schema_version"] == str(SCHEMA_VERSION).encode()
    assert pq.read_table(run.path / "ratings", partitioning=None).num_rows == 1


def test_without_its_marker_a_step_is_not_there(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    run.commit(0, {"ratings": [rating(0)]}, {"x": 1.0})
    run.commit(1, {"ratings": [rating(1)]}, {"x": 2.0})
    (run.path / "commits" / "step=1.json").unlink()
    assert committed_steps(run.path) == [0]
    assert [row["step"] for row in read_rows(run.path, "ratings")] == [0]
    assert read_metrics(run.path) == [{"step": 0, "x": 1.0}]


def test_a_step_is_committed_once(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    run.commit(0, {"ratings": [rating(0)]}, {})
    with pytest.raises(ValueError, match="committed before"):
        run.commit(0, {"ratings": [rating(0, "other")]}, {})
    assert [row["member_id"] for row in read_rows(run.path, "ratings")] == ["teacher_0"]


def test_rows_that_do_not_fit_leave_the_step_uncommitted(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    with pytest.raises(ValueError, match="no column"):
        run.commit(0, {"ratings": [rating(0)], "matches": [{"colour": 1}]}, {})
    assert committed_steps(run.path) == []


@pytest.mark.parametrize("kind", ["run", "file", "stranger"])
def test_what_exists_is_refused_and_left_alone(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "run"
    if kind == "run":
        make_run(path).commit(0, {"ratings": [rating(0)]}, {})
    elif kind == "file":
        path.write_text("mine")
    else:
        path.mkdir()
        (path / "thesis.tex").write_text("mine")
    before = {p: p.read_bytes() for p in [path, *path.rglob("*")] if p.is_file()}
    for attempt in (refuse_existing, make_run):
        with pytest.raises(StorageError, match="exists already"):
            attempt(path)
    assert {p: p.read_bytes() for p in [path, *path.rglob("*")] if p.is_file()} == before


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    assert committed_steps(make_run(tmp_path).path) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_one_clear_line_and_earlier_steps_stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(tmp_path / "run")
    run.commit(0, {"ratings": [rating(0)]}, {})
    real = os.fsync

    def full(descriptor: int) -> None:
        with open("/dev/full", "wb", buffering=0) as file:
            file.write(b"x")
        real(descriptor)

    monkeypatch.setattr(storage.os, "fsync", full)
    with pytest.raises(StorageError, match=r"cannot write step 1 to .*: No space left on device") as caught:
        run.commit(1, {"ratings": [rating(1)]}, {})
    assert "\n" not in str(caught.value)
    with pytest.raises(StorageError, match="No space left"):
        make_run(tmp_path / "other")
    monkeypatch.undo()
    assert not (tmp_path / "other").exists()
    assert committed_steps(run.path) == [0]
    assert [row["step"] for row in read_rows(run.path, "ratings")] == [0]


def test_a_place_that_cannot_be_written_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match=r"cannot make the run folder .*: Not a directory"):
        make_run(tmp_path / "file" / "run")


@pytest.mark.parametrize("there_now", ["nothing", "file", "folder", "another run"])
def test_a_lost_run_folder_is_one_clear_line_and_none_is_made_in_its_place(tmp_path: Path, there_now: str) -> None:
    run = make_run(tmp_path / "run")
    run.path.rename(tmp_path / "gone")
    if there_now == "file":
        (tmp_path / "run").write_text("")
    elif there_now == "folder":
        (tmp_path / "run").mkdir()
    elif there_now == "another run":
        make_run(tmp_path / "run").close()
    before = listing(tmp_path)
    for write in (
        lambda: run.commit(0, {"ratings": [rating(0)]}, {}),
        lambda: run.adapters().__enter__(),
        lambda: run.state(0).__enter__(),
    ):
        with pytest.raises(StorageError, match=r"run folder .* is gone"):
            write()
    assert listing(tmp_path) == before


def test_a_bound_on_the_size_of_files_is_one_clear_line_and_earlier_steps_stand(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    run.commit(0, {"ratings": [rating(0)]}, {})
    before = listing(run.path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(StorageError, match=r"cannot write step 1 to .*: File too large"):
            run.commit(1, {"ratings": [rating(1)]}, {})
        with pytest.raises(StorageError, match=r"cannot write adapters .*: File too large"), run.adapters() as folder:
            save(folder / "a" / "0", b"w" * 2000)
        with pytest.raises(StorageError, match=r"cannot write the state .*: File too large"), run.state(1) as folder:
            save(folder, b"w" * 2000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert listing(run.path).items() >= before.items()
    assert committed_steps(run.path) == [0]
    run.roll_back(0)
    assert listing(run.path) == before
    run.commit(1, {"ratings": [rating(1)]}, {})
    assert [row["step"] for row in read_rows(run.path, "ratings")] == [0, 1]


@pytest.mark.parametrize("junk", [b"", b"\xff\xfe", b"{", b"{}", b"[]", b"null", b'"x"'])
@pytest.mark.parametrize("file", ["versions.json", "commits/step=0.json"])
def test_a_damaged_file_is_one_clear_line(tmp_path: Path, file: str, junk: bytes) -> None:
    run = make_run(tmp_path / "run")
    run.commit(0, {"ratings": [rating(0)]}, {})
    run.close()
    (run.path / file).write_bytes(junk)
    read = RunFolder.reopen if file == "versions.json" else read_rating_table
    with pytest.raises(StorageError, match=Path(file).name) as caught:
        read(run.path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("junk", [b"\xff\xfe\n", b"{\n", b"{}\n", b"[]\n", b"null\n"])
def test_damaged_metrics_are_one_clear_line(tmp_path: Path, junk: bytes) -> None:
    run = make_run(tmp_path / "run")
    run.commit(0, {}, {})
    (run.path / "metrics.jsonl").write_bytes(junk)
    with pytest.raises(StorageError, match=r"metrics\.jsonl"):
        read_metrics(run.path)


def test_what_a_run_goes_on_with_is_held_against_what_was_saved(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    with run.adapters() as folder:
        save(folder / "a" / "0", b"first")
        save(folder / "b" / "0", b"other")
    with run.state(0) as folder:
        save(folder, b"state")
    run.commit(0, {}, {})
    run.check_saved(0, ["a/0"])
    save(run.path / "adapters" / "b" / "0", b"damaged")
    run.check_saved(0, ["a/0"])
    with pytest.raises(StorageError, match=r"adapters/b/0/w in .* is not the file that was committed"):
        run.check_saved(0, ["b/0"])
    save(run.path / "state" / "step=0", b"damaged")
    with pytest.raises(StorageError, match=r"state/step=0/w in .* is not the file"):
        run.check_saved(0, [])
    (run.path / "adapters" / "a" / "0" / "w").unlink()
    with pytest.raises(StorageError, match=r"cannot read adapters/a/0/w in .*: No such file"):
        run.check_saved(0, ["a/0"])


@pytest.mark.parametrize("damage", [b"", b"PAR1 nonsense"])
def test_a_damaged_file_of_a_committed_step_is_one_clear_line(tmp_path: Path, damage: bytes) -> None:
    run = make_run(tmp_path / "run")
    run.commit(0, {"ratings": [rating(0)]}, {})
    (run.path / "ratings" / "step=0" / "part-0.parquet").write_bytes(damage)
    with pytest.raises(StorageError, match="cannot read step 0 of table 'ratings'"):
        read_table(run.path, "ratings")


def test_a_table_of_another_schema_version_is_one_clear_line(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    run.commit(0, {"ratings": [rating(0)]}, {})
    path = run.path / "ratings" / "step=0" / "part-0.parquet"
    pq.write_table(pq.read_table(path, partitioning=None).replace_schema_metadata({"schema_version": "1"}), path)
    with pytest.raises(StorageError, match=rf"its schema version is b'1', this release reads {SCHEMA_VERSION} only"):
        read_table(run.path, "ratings")


def test_what_is_no_run_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="no run folder"):
        read_table(tmp_path, "ratings")


def test_state_takes_the_place_of_the_state_before_once_its_step_is_committed(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    with run.state(1) as folder:
        (folder / "x").write_text("1")
    run.commit(1, {}, {})
    with run.state(2) as folder:
        (folder / "x").write_text("2")
    assert {path.name for path in (run.path / "state").iterdir()} == {"step=1", "step=2"}
    run.commit(2, {}, {})
    assert [path.name for path in (run.path / "state").iterdir()] == ["step=2"]

    def write_half(folder: Path) -> None:
        (folder / "x").write_text("3")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), run.state(3) as folder:
        write_half(folder)
    assert [path.name for path in (run.path / "state").iterdir()] == ["step=2"]
    assert (run.path / "state" / "step=2" / "x").read_text() == "2"


def test_any_reader_of_partitioned_parquet_reads_a_tables_folder(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    for step in (0, 2):
        run.commit(step, {"ratings": [rating(step)]}, {})
    table = pq.read_table(run.path / "ratings")
    assert sorted(int(step) for step in table["step"].to_pylist()) == [0, 2]
    assert set(table.column_names) == set(read_table(run.path, "ratings").column_names)


def test_rows_of_another_step_are_refused(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    with pytest.raises(ValueError, match="must name that step"):
        run.commit(1, {"ratings": [rating(2)]}, {})
    assert committed_steps(run.path) == []


def test_a_folder_has_one_writer_at_a_time(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    with pytest.raises(StorageError, match="another process is writing"):
        RunFolder.reopen(run.path)
    run.close()
    again = RunFolder.reopen(run.path)
    assert again.run_id == "r1"


def test_a_marker_names_the_adapters_that_its_step_saved(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    for step, member in enumerate(("a", "b")):
        with run.adapters() as folder:
            save(folder / member / "0", b"weights")
        run.commit(step, {}, {})
    markers = [json.loads((run.path / "commits" / f"step={step}.json").read_text()) for step in (0, 1)]
    sha256 = hashlib.sha256(b"weights").hexdigest()
    assert [marker["adapters"] for marker in markers] == [{"a/0/w": sha256}, {"b/0/w": sha256}]


def test_rolling_back_undoes_what_came_later_and_nothing_else(tmp_path: Path) -> None:
    def play(run: RunFolder, steps: range, *, saved: int) -> None:
        for step in steps:
            with run.adapters() as folder:
                save(folder / "a" / str(step), b"%d" % step)
            if step <= saved:
                with run.state(step) as folder:
                    save(folder, b"state")
            run.commit(step, {"ratings": [rating(step)]}, {"x": step})

    run, other = make_run(tmp_path / "run"), make_run(tmp_path / "other")
    play(other, range(3), saved=2)
    play(run, range(5), saved=2)
    with run.adapters() as folder:  # of a step that never came to be
        save(folder / "child" / "0", b"child")
    with run.state(9) as folder:
        save(folder, b"state")
    (run.path / "state" / ".step=5.tmp").mkdir()
    (run.path / "ratings" / "step=5").mkdir()
    with (run.path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 5, "x"')
    assert run.last_state() == 2
    run.roll_back(2)
    assert listing(run.path) == listing(other.path)
    run.roll_back(None)
    assert committed_steps(run.path) == []
    assert {path.name for path in run.path.rglob("*") if path.is_file()} == {
        *("lock", "config.yaml", "versions.json", "metrics.jsonl"),
    }


def test_without_a_state_there_is_no_going_on(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    assert run.last_state() is None
    run.commit(0, {}, {})
    with pytest.raises(StorageError, match="no state of a committed step"):
        run.last_state()


def read_rating_table(run: Path) -> Any:
    return read_table(run, "ratings")


def save(folder: Path, data: bytes) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "w").write_bytes(data)


def listing(run: Path) -> dict[str, bytes]:
    return {str(path.relative_to(run)): path.read_bytes() for path in run.rglob("*") if path.is_file()}
