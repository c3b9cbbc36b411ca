"""Runs of Internal flows as workers see them: what they claim, and how it ends.

A claim is the right to carry a part of a run out while its token is current; whoever lost it writes
nothing any more (IF-9).
"""

from dataclasses import dataclass, field
from enum import StrEnum

from orchestrator.ports.runs.records import Progress
from orchestrator.ports.runs.status import ItemStatus, Phase, RedoStatus, RunStatus, Urgency
from orchestrator.types import Json, JsonObject, SessionId, TenantId, TurnId


@dataclass(frozen=True, slots=True)
class RunFacts:
    """The facts of a run for its stages, as stored. `options` and `data` after `before_all`."""

    run_id: str
    tenant_id: TenantId
    session_id: SessionId | None
    flow: str
    redo_count: int | None
    parameters: JsonObject
    options: JsonObject
    config: JsonObject
    data: Json
    urgency: Urgency = Urgency.HOUSEKEEPING
    turn_id: TurnId | None = None


@dataclass(frozen=True, slots=True)
class RunClaim:
    """The right to carry a run's phase out while `token` is current. `attempts` counts this one.

    `inputs` are there before the items, `items` after them.
    """

    facts: RunFacts
    token: int
    phase: Phase
    attempts: int
    inputs: tuple[Json, ...] = ()
    items: Progress = field(default_factory=Progress)


@dataclass(frozen=True, slots=True)
class ClaimedItem:
    """One item to be carried out; `attempts` counts this one."""

    position: int
    input: Json
    attempts: int


@dataclass(frozen=True, slots=True)
class ItemsClaim:
    """The right to end some items while `token` is current."""

    facts: RunFacts
    token: int
    items: tuple[ClaimedItem, ...]


@dataclass(frozen=True, slots=True)
class ItemEnd:
    """The end of an item: an output, the reason it was skipped, or the error it failed with.

    `record`: its calls and what it came to, for replays; None: none is kept.
    """

    position: int
    status: ItemStatus
    output: Json = None
    reason: str | None = None
    error: str | None = None
    record: Json = None


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a run ended. `redo_count`: the next run's place in the chain when one is to follow.

    `records`: as that of an item, of the phases that led to this end and are not kept yet.
    """

    status: RunStatus
    closing: Json = None
    reason: str | None = None
    error: str | None = None
    redo: RedoStatus = RedoStatus.NONE
    redo_count: int | None = None
    redo_after_s: float = 0.0
    records: tuple[tuple[Phase, Json], ...] = ()


class Recorded(StrEnum):
    """The result of writing the ends of items."""

    LOST = "lost"
    """The claim is no longer current; nothing was written."""
    MORE = "more"
    """Other items are unfinished."""
    ALL = "all"
    """No item is left: `after_all` may begin."""
