"""A worker that is forked has next to nothing left to import."""

from __future__ import annotations

from pathlib import Path

from tests.integration.chaos.fleet import fleet, wait_until

LATE = "tests.integration.chaos.processes.late_imports"


def test_what_a_worker_needs_is_imported_before_it_is_forked(
    database_url: str, redis_url: str, tmp_path: Path
) -> None:
    with fleet(database_url, redis_url, tmp_path) as crew:
        (worker,) = crew.start(application=LATE)
        wait_until(lambda: "imported late:" in worker.log.read_text(), within_s=10, what="it has said so")
    (said,) = (line for line in worker.log.read_text().splitlines() if line.startswith("imported late:"))
    late = said.removeprefix("imported late:").split()
    assert len(late) < 20, late
