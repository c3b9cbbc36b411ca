"""When scheduled jobs are due. A due time is the same wherever it is worked out, so that it can be claimed (IF-15)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from cronsim import CronSim, CronSimError

from orchestrator.errors import Problem

_HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class Job:
    """The flows of a trigger, started each `every_s` seconds, `offset_s` after the full period, or by `cron` (UTC)."""

    name: str
    trigger: str
    every_s: float = 0.0
    offset_s: float = 0.0
    cron: str | None = None

    def due(self, now: float) -> float:
        """The latest due time that is not after `now`; unix seconds."""
        if self.cron is None:
            return (now - self.offset_s) // self.every_s * self.every_s + self.offset_s
        after = datetime.fromtimestamp(int(now) + 1, UTC)
        return next(CronSim(self.cron, after, reverse=True)).timestamp()

    def following(self, due: float) -> float:
        """The due time after one."""
        if self.cron is None:
            return due + self.every_s
        return next(CronSim(self.cron, datetime.fromtimestamp(due, UTC))).timestamp()


DEFAULT_JOBS: tuple[Job, ...] = (
    Job("repair_state", "repair_state", 600.0),
    Job("abandon_flows", "abandon_flows", _HOUR_S, 300.0),
    Job("summarize_idle", "summarize_idle", 600.0, 120.0),
    Job("embed_documents", "embed_documents", 600.0, 240.0),
    Job("erase_forgotten", "erase_forgotten", 300.0, 60.0),
    Job("expire_sessions", "expire_sessions", _HOUR_S, 900.0),
    Job("prune_archive", "prune_archive", _HOUR_S, 1200.0),
    Job("prune_runtime", "prune_runtime", _HOUR_S, 2400.0),
)


class Schedule(NamedTuple):
    """`off`: jobs that cannot be read, with what is wrong; the others are fired all the same."""

    jobs: list[Job]
    off: list[Problem]


def read_jobs(given: Mapping[str, Any], defaults: tuple[Job, ...] = DEFAULT_JOBS) -> Schedule:
    """The jobs after configuration: ``{name: {trigger, every_s, offset_s}}``, or ``null`` to leave one out.

    ``cron``, five fields of time in UTC, stands instead of `every_s` and `offset_s`.
    """
    jobs = {job.name: job for job in defaults}
    off: list[Problem] = []
    for name, body in given.items():
        known = jobs.pop(name, None)
        if body is None:
            continue
        try:
            jobs[name] = _read(name, known, dict(body))
        except (TypeError, ValueError) as error:
            off.append(Problem(f"internal_flows.yaml: schedule.{name}", str(error)))
    return Schedule(list(jobs.values()), off)


def _read(name: str, known: Job | None, body: dict[str, Any]) -> Job:
    trigger = str(body.pop("trigger", known.trigger if known else name))
    cron = body.pop("cron", None)
    if cron is not None:
        if body:
            raise ValueError(f"has cron, and beside it the key {min(body)!r}")
        try:
            next(CronSim(cron, datetime.now(UTC), reverse=True))
        except (CronSimError, StopIteration, TypeError, AttributeError) as error:
            raise ValueError(f"cron {cron!r} names no time, such as '30 4 * * mon-fri'") from error
        return Job(name, trigger, cron=cron)
    every_s = body.pop("every_s", known.every_s if known else None)
    offset_s = body.pop("offset_s", known.offset_s if known else 0.0)
    if body:
        raise ValueError(f"has the unknown key {min(body)!r}")
    if not isinstance(every_s, int | float) or every_s < 1:
        raise ValueError("needs every_s, seconds from 1, or cron")
    if not isinstance(offset_s, int | float) or not 0 <= offset_s < every_s:
        raise ValueError("offset_s must be seconds below every_s")
    return Job(name, trigger, float(every_s), float(offset_s))
