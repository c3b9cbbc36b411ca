"""Trained models as files: atomic, ignored if other users could have written them, optional (RT-21, RT-22)."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from orchestrator.adapters.models import trained_files
from orchestrator.adapters.models.trained_files import TrainedFiles
from orchestrator.errors import Unavailable


def test_what_is_put_is_found_again(tmp_path: Path) -> None:
    TrainedFiles(tmp_path / "deep" / "folder").put("key", b"content")
    assert TrainedFiles(tmp_path / "deep" / "folder").get("key") == b"content"
    assert TrainedFiles(tmp_path).get("key") is None


def test_writers_side_by_side_leave_one_whole_file_and_nothing_else(tmp_path: Path) -> None:
    contents = [bytes([number]) * 200_000 for number in range(8)]
    with ThreadPoolExecutor(8) as threads:
        for _ in threads.map(lambda content: TrainedFiles(tmp_path).put("key", content), contents):
            assert TrainedFiles(tmp_path).get("key") in contents
    assert [path.name for path in tmp_path.iterdir()] == ["key.npz"]


@pytest.mark.parametrize("mode", [0o666, 0o664])
def test_a_file_that_others_could_have_written_is_not_used(tmp_path: Path, mode: int) -> None:
    files = TrainedFiles(tmp_path)
    files.put("key", b"content")
    (tmp_path / "key.npz").chmod(mode)
    with capture_logs() as logs:
        assert files.get("key") is None
    assert [entry["event"] for entry in logs] == [
        "Ignoring a trained model that other users could have written."
    ]


def test_a_file_of_another_account_is_not_used(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    files = TrainedFiles(tmp_path)
    files.put("key", b"content")
    os.chown(tmp_path / "key.npz", 12345, 12345)
    assert files.get("key") is None


def test_without_a_place_to_write_nothing_is_kept_and_all_goes_on(tmp_path: Path) -> None:
    """A file in the folder's place simulates a read-only file system, because root can write anywhere."""
    (tmp_path / "file").touch()
    files = TrainedFiles(tmp_path / "file" / "trained")
    with capture_logs() as logs:
        files.put("key", b"content")
        assert files.get("key") is None
    assert logs[0]["event"] == "Could not store a trained model."
    with pytest.raises(Unavailable, match="Can't write to"):
        files.require_writable()


def test_the_oldest_make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trained_files, "KEPT_AT_MOST", 2)
    files = TrainedFiles(tmp_path)
    for age, key in enumerate(("new", "middle", "old")):
        files.put(key, b"content")
        os.utime(tmp_path / f"{key}.npz", (1000 - age, 1000 - age))
    files.put("newest", b"content")
    assert {path.stem for path in tmp_path.iterdir()} == {"newest", "new"}
