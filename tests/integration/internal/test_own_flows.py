"""A flow in a domain's folder is found, with its configuration, and run by a worker (IF-5, IF-16)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from gateway.routes.health import Ready, ready
from gateway.wiring import open_dependencies
from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.runs.runs import PostgresRuns
from orchestrator.errors import ConfigurationError
from orchestrator.ports.runs.records import NewRun
from orchestrator.ports.runs.status import ENDED, RunStatus
from orchestrator.settings import Settings
from orchestrator.types import DEFAULT_TENANT
from tests.integration.chaos.fleet import fleet
from workers.internal.catalogue import own_flows

OWN = """
from internal_flows.stages import InternalFlow, redo_run


class CountWords(InternalFlow):
    name = "count_words"
    trigger = "words_due"
    input_type = str

    async def work(self, run, item, data):
        return len(item.split()) * run.config.get("factor", 1)

    async def after_all(self, run, outputs):
        return {"total": sum(outputs)}
"""


@pytest.fixture
def domain(tmp_path: Path) -> Path:
    folder = tmp_path / "house"
    folder.mkdir()
    (folder / "ontology.yaml").write_text("flows: {}\n")
    (folder / "internal_flows.py").write_text(OWN)
    (folder / "internal_flows.yaml").write_text("flows:\n  count_words: {factor: 2}\n")
    return folder


def test_only_the_flows_that_the_file_defines_are_taken(domain: Path) -> None:
    assert [flow.name for flow in own_flows(domain)] == ["count_words"]


def test_a_file_that_cannot_be_read_is_told(domain: Path) -> None:
    (domain / "internal_flows.py").write_text("import nothing_like_this\n")

    with pytest.raises(ConfigurationError, match="nothing_like_this"):
        own_flows(domain)


BAD = """

class Bad(InternalFlow):
    name = "bad"
    trigger = "never"
    tools = ("hammer",)
"""


async def test_a_worker_carries_it_out_with_the_configuration_of_the_moment(
    domain: Path, database_url: str, redis_url: str, tmp_path: Path
) -> None:
    """The gateway reports the flows that are off; all other flows run."""
    (domain / "internal_flows.py").write_text(OWN + BAD)
    settings = Settings(DATABASE_URL=database_url, REDIS_URL=redis_url)
    with fleet(database_url, redis_url, tmp_path, {"PARLEY_DOMAIN": str(domain)}) as crew:
        crew.start(1, application="workers.app", queues="internal,urgent")
        async with Database(database_url) as database:
            runs = PostgresRuns(database)
            assert (await _closing(runs)) == {"total": 6}
            (domain / "internal_flows.yaml").write_text("flows:\n  count_words: {factor: 10}\n")
            assert (await _closing(runs)) == {"total": 30}
        async with open_dependencies(settings) as dependencies:
            told = await ready(dependencies.operations)
            while not (isinstance(told, Ready) and told.off):
                await asyncio.sleep(0.1)
                told = await ready(dependencies.operations)

    assert [problem for problem in told.off if "bad" in problem and "unknown tool 'hammer'" in problem]


async def _closing(runs: PostgresRuns) -> object:
    started = await runs.start((NewRun("count_words", inputs=("one two", "three")),))
    run_id = started.runs["count_words"]
    while (record := await runs.get(DEFAULT_TENANT, run_id)).status not in ENDED:
        await asyncio.sleep(0.02)
    assert record.status is RunStatus.DONE, record.error
    return record.closing
