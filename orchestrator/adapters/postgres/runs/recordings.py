"""Reads runs of Internal flows that have ended, each with the records of its stages; writes nothing."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlalchemy import desc, select

from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.tables import (
    internal_items,
    internal_records,
    internal_runs,
    record_of,
    sessions,
)
from orchestrator.ports.runs.records import ItemRecord
from orchestrator.ports.runs.status import Phase, RunStatus
from orchestrator.ports.runs.work import RunFacts
from orchestrator.types import Json, JsonObject

STOPPED = "that never ran to an end"
NO_RECORD = "whose record is gone or was not kept"
CUT_OFF = "in which a call was cut off"


@dataclass(frozen=True, slots=True)
class RecordedStage:
    """A stage of a run, or the stages of one item. `position`: of that, else -1. `given`: inputs, the item, outputs."""

    phase: Phase
    position: int
    given: Json
    body: JsonObject


@dataclass(slots=True)
class RunRecording:
    """A run that has ended. `facts`: as it began. `left_out`: why it cannot be replayed, empty otherwise."""

    facts: RunFacts
    domain: str | None
    stages: list[RecordedStage] = field(default_factory=list[RecordedStage])
    left_out: str = ""


class PostgresRunRecordings:
    """The runs of one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(
        self, named: Sequence[str], *, domain: str | None, tenant: str | None, last: int
    ) -> dict[str, str | None]:
        """List the runs that are named, else those of a domain's sessions that ended last; newest first, each with
        the domain of its session, if it has one.
        """
        runs = internal_runs.c
        query = select(runs.run_id, sessions.c.domain).join_from(
            internal_runs, sessions, sessions.c.session_id == runs.session_id, isouter=True
        )
        if named:
            query = query.where(runs.run_id.in_(named))
        else:
            query = query.where(runs.finished_at.is_not(None), sessions.c.domain == domain).limit(last)
        if tenant is not None:
            query = query.where(runs.tenant_id == tenant)
        rows = await self._database.read_all(query.order_by(desc(runs.finished_at), desc(runs.number)))
        return {row.run_id: row.domain for row in rows}

    async def read(self, run_id: str, domain: str | None) -> RunRecording:
        """Read one run with its records."""
        runs, of_it = internal_runs, internal_items.c.run_id == run_id
        async with self._database.transaction() as connection:
            row = (await connection.execute(select(runs).where(runs.c.run_id == run_id))).one()
            items = (await connection.execute(select(internal_items).where(of_it))).all()
            kept = select(internal_records).where(internal_records.c.run_id == run_id)
            records = (await connection.execute(kept.order_by(internal_records.c.position))).all()
        recording = RunRecording(record_of(RunFacts, row, config=row.config or {}), domain)
        found = {
            one.position: record_of(ItemRecord, one, output=one.result)
            for one in sorted(items, key=lambda one: one.position)
        }
        given: dict[Phase, Json] = {
            Phase.BEFORE: row.inputs,
            Phase.AFTER: [one.output for one in found.values()],
        }
        for one in records:
            phase = Phase(one.phase)
            stage = found[one.position].input if phase is Phase.ITEMS else given[phase]
            recording.stages.append(RecordedStage(phase, one.position, stage, one.body))
        recording.stages.sort(key=lambda stage: [*Phase].index(stage.phase))
        recording.left_out = _why_not(row.status, len(found), recording.stages)
        return recording


def _why_not(status: str, items: int, stages: list[RecordedStage]) -> str:
    if status not in {RunStatus.DONE, RunStatus.SKIPPED, RunStatus.FAILED}:
        return STOPPED
    counted = [sum(stage.phase is one for stage in stages) for one in (Phase.BEFORE, Phase.ITEMS)]
    if counted != [1, items]:
        return NO_RECORD
    if lost := next((stage.body["lost"] for stage in stages if "lost" in stage.body), ""):
        return lost
    cut = any({"answer", "error"}.isdisjoint(step) for stage in stages for step in stage.body["steps"])
    return CUT_OFF if cut else ""
