"""How the whole system stands at a moment: what no single process can count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Queue:
    """`oldest_s`: how long its first entry has waited, in seconds; 0 when it is empty."""

    waiting: int = 0
    oldest_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Standing:
    """`held_lanes` are at work, `waiting_lanes` have turns and nobody who works on them.

    `outbox` by kind: what was committed and not yet sent. `runs` by urgency: Internal flows that are due
    and that nobody is at; those of housekeeping are the debt (IF-14), which `adapters.postgres.load` tells by
    session. `webhooks_…`: feeds whose receiver fails, and those that wait for an operator.
    """

    unfinished_turns: int
    held_lanes: int
    waiting_lanes: int
    oldest_turn_s: float
    quarantined_turns: int
    workers: int
    pending_approvals: int
    outbox: Mapping[str, Queue] = field(default_factory=dict[str, Queue])
    runs: Mapping[str, Queue] = field(default_factory=dict[str, Queue])
    webhooks_failing: int = 0
    webhooks_given_up: int = 0


class ReadStanding(Protocol):
    async def read(self) -> Standing:
        """Over all tenants. Raises Unavailable."""
        ...
