"""When scheduled jobs are due. A due time is the same wherever it is worked out, so that it can be claimed (IF-15)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from orchestrator.errors import Problem

_HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class Job:
    """The flows of a trigger, started every `every_s` seconds, `offset_s` after the full period (UTC)."""

    name: str
    trigger: str
    every_s: float
    offset_s: float = 0.0

    def due(self, now: float) -> float:
        """The latest due time that is not after `now`; unix seconds."""
        return (now - self.offset_s) // self.every_s * self.every_s + self.offset_s


DEFAULT_JOBS: tuple[Job, ...] = (
    Job("repair_state", "repair_state", 600.0),
    Job("abandon_flows", "abandon_flows", _HOUR_S, 300.0),
    Job("summarize_idle", "summarize_idle", 600.0, 120.0),
    Job("embed_documents", "embed_documents", 600.0, 240.0),
    Job("expire_sessions", "expire_sessions", _HOUR_S, 900.0),
    Job("prune_archive", "prune_archive", 24 * _HOUR_S, 3 * _HOUR_S),
    Job("prune_runtime", "prune_runtime", 24 * _HOUR_S, 4 * _HOUR_S),
)


class Schedule(NamedTuple):
    """`off`: jobs that cannot be read, with what is wrong; the others are fired all the same."""

    jobs: list[Job]
    off: list[Problem]


def read_jobs(given: Mapping[str, Any], defaults: tuple[Job, ...] = DEFAULT_JOBS) -> Schedule:
    """The jobs after configuration: ``{name: {trigger, every_s, offset_s}}``, or ``null`` to leave one out."""
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
    trigger = body.pop("trigger", known.trigger if known else name)
    every_s = body.pop("every_s", known.every_s if known else None)
    offset_s = body.pop("offset_s", known.offset_s if known else 0.0)
    if body:
        raise ValueError(f"has the unknown key {min(body)!r}")
    if not isinstance(every_s, int | float) or every_s < 1:
        raise ValueError("needs every_s, seconds from 1")
    if not isinstance(offset_s, int | float) or not 0 <= offset_s < every_s:
        raise ValueError("offset_s must be seconds below every_s")
    return Job(name, str(trigger), float(every_s), float(offset_s))
