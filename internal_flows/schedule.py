"""Compute due times of scheduled jobs. All schedulers get the same times, so that one of them claims a firing (IF-15).

When clocks change, a cron job with a fixed hour runs once: in the first occurrence of a repeated hour, or right
after a skipped hour.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from orchestrator.domain.locales import check_timezone
from orchestrator.errors import Problem

_HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class Job:
    """A schedule for a trigger: by `cron`, or every `every_s` seconds.

    `offset_s`: shift of the due times from multiples of `every_s` in Unix time, in seconds. `timezone`: the
    time zone of `cron`.
    """

    name: str
    trigger: str
    every_s: float = 0.0
    offset_s: float = 0.0
    cron: str | None = None
    timezone: str = "UTC"

    def due(self, now: float) -> float:
        """Return the latest due time up to `now`, in Unix seconds."""
        if self.cron is None:
            return (now - self.offset_s) // self.every_s * self.every_s + self.offset_s
        zone = ZoneInfo(self.timezone)
        due = next(CronSim(self.cron, datetime.fromtimestamp(int(now) + 1, zone), reverse=True)).timestamp()
        # Across a clock change, a backward search finds different times than a forward search. Therefore,
        # search forward from the day before.
        before = datetime.fromtimestamp(due, zone).replace(hour=12, minute=0, fold=0) - timedelta(days=1)
        if before.utcoffset() == datetime.fromtimestamp(now, zone).utcoffset():
            return due
        due = before.timestamp()
        while (later := self.following(due)) <= now:
            due = later
        return due

    def following(self, due: float) -> float:
        """Return the next due time after `due`, in Unix seconds."""
        if self.cron is None:
            return due + self.every_s
        return next(CronSim(self.cron, datetime.fromtimestamp(due, ZoneInfo(self.timezone)))).timestamp()


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
    """Valid jobs. `off`: problems with invalid jobs, which never run."""

    jobs: list[Job]
    off: list[Problem]


def read_jobs(given: Mapping[str, Any], defaults: tuple[Job, ...] = DEFAULT_JOBS) -> Schedule:
    """Return the default jobs, as changed and extended by the configuration.

    Format: ``{name: {trigger, every_s, offset_s}}``, with ``null`` as the value to remove a default job. Jobs
    can have ``cron``, with five fields, and ``timezone`` instead of ``every_s`` and ``offset_s``.
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
        zone = body.pop("timezone", "UTC")
        if body:
            raise ValueError(f"has cron, so it can't have the key {min(body)!r}")
        try:
            check_timezone(zone)
        except (ValueError, TypeError) as error:
            raise ValueError(f"timezone {zone!r} {error}") from error
        try:
            next(CronSim(cron, datetime.now(UTC), reverse=True))
        except (CronSimError, StopIteration, TypeError, AttributeError) as error:
            raise ValueError(
                f"cron {cron!r} is not a valid cron expression; use five fields, for example '30 4 * * mon-fri'"
            ) from error
        return Job(name, trigger, cron=cron, timezone=zone)
    every_s = body.pop("every_s", known.every_s if known else None)
    offset_s = body.pop("offset_s", known.offset_s if known else 0.0)
    if body:
        raise ValueError(f"has the unknown key {min(body)!r}")
    if not isinstance(every_s, int | float) or every_s < 1:
        raise ValueError("needs every_s (1 second or more) or cron")
    if not isinstance(offset_s, int | float) or not 0 <= offset_s < every_s:
        raise ValueError("offset_s must be at least 0 and less than every_s")
    return Job(name, trigger, float(every_s), float(offset_s))
