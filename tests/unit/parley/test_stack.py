"""Roles of a run, with their order and environment (RT: SIGTERM only, threads pool)."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from orchestrator.adapters.models.trained_files import TrainedFiles
from parley.data_folder import UpNote
from parley.embedded import Stores
from parley.stack import Flower, StackPlan, address_of, list_programs, take_prepared

STORES = Stores("postgresql://parley:secret-one@127.0.0.1:1/parley", "redis://:secret-two@127.0.0.1:2/0")
FLOWER = Flower(5555, "parley", "secret-three")


def make_plan(**changes: object) -> StackPlan:
    values = {"data_dir": Path("/data"), "domain": "travel", "host": "127.0.0.1", "port": 8600, **changes}
    return StackPlan(**values)


def test_everything_runs_in_up() -> None:
    names = [program.name for program in list_programs(make_plan(turn_workers=2), STORES, FLOWER)]
    assert names == ["gateway", "worker", "turns-2", "flower"]


def test_a_private_run_has_no_schedule_and_no_flower() -> None:
    names = [program.name for program in list_programs(make_plan(private=True), STORES, None)]
    assert names == ["gateway", "worker"]


def test_no_secret_is_in_a_command_line_and_every_role_knows_the_stores() -> None:
    for program in list_programs(make_plan(), STORES, FLOWER):
        assert "secret" not in " ".join(program.command)
        assert program.environment["DATABASE_URL"] == STORES.database_url
        assert program.environment["REDIS_URL"] == STORES.redis_url
        assert program.environment["PARLEY_DOMAIN"] == "travel"


def test_workers_use_the_threads_pool_and_are_only_ever_sent_sigterm() -> None:
    workers = [
        program for program in list_programs(make_plan(), STORES, FLOWER) if "worker" in program.command
    ]
    assert [command[command.index("-Q") + 1] for command in (worker.command for worker in workers)] == [
        "turns,submissions,internal,urgent"
    ]
    for worker in workers:
        assert worker.command[worker.command.index("-P") + 1] == "threads"
        assert worker.stop_signal is signal.SIGTERM


@pytest.mark.parametrize(
    ("host", "url"), [("127.0.0.1", "http://127.0.0.1:8600"), ("0.0.0.0", "http://127.0.0.1:8600")]
)
def test_the_address_can_be_reached_from_this_machine(host: str, url: str) -> None:
    assert address_of(host, 8600) == url


def test_the_note_of_up_is_private_and_a_broken_one_counts_as_none(tmp_path: Path) -> None:
    note = UpNote(url="http://127.0.0.1:8600", pid=1, domain="travel")
    note.write(tmp_path)
    assert UpNote.read(tmp_path) == note
    assert UpNote.path(tmp_path).stat().st_mode & 0o777 == 0o600

    UpNote.path(tmp_path).write_text('{"url": "http')
    assert UpNote.read(tmp_path) is None
    UpNote.path(tmp_path).unlink()
    assert UpNote.read(tmp_path) is None


def test_all_processes_keep_what_they_train_in_one_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    def places(**changes: object) -> set[str]:
        plan = make_plan(**changes)
        return {program.environment["PARLEY_TRAINED_FOLDER"] for program in list_programs(plan, STORES, None)}

    monkeypatch.delenv("PARLEY_TRAINED_FOLDER", raising=False)
    assert places() == {"/data/trained"}
    assert places(private=True, trained=Path("/mine/trained")) == {"/mine/trained"}
    monkeypatch.setenv("PARLEY_TRAINED_FOLDER", "/image/trained")
    assert places() == {"/image/trained"}


def test_a_new_folder_begins_with_what_was_trained_as_parley_was_installed(tmp_path: Path) -> None:
    prepared, mine = TrainedFiles(tmp_path / "prepared"), TrainedFiles(tmp_path / "data" / "trained")
    take_prepared(tmp_path / "data" / "trained", tmp_path / "nothing")
    assert not (tmp_path / "data").exists()
    for key in ("one", "two"):
        prepared.put(key, b"prepared")
    mine.put("two", b"mine")

    take_prepared(tmp_path / "data" / "trained", tmp_path / "prepared")
    assert (mine.get("one"), mine.get("two")) == (b"prepared", b"mine")
