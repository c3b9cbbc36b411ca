"""Background runs for workers: claims and results.

A claim is the right to execute part of a run while its token is current; a former holder can no longer write
(IF-9).
"""

from dataclasses import dataclass, field
from enum import StrEnum

from orchestrator.ports.runs.records import Hint, Progress
from orchestrator.ports.runs.status import ItemStatus, Phase, RedoStatus, RunStatus, Urgency
from orchestrator.types import Json, JsonObject, SessionId, TenantId, TurnId


@dataclass(frozen=True, slots=True)
class RunFacts:
    """Stored facts of a run for its stages. `options` and `data` are those after `before_all`."""

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
    """The right to execute a run's phase while `token` is current. `attempts` includes this one.

    `inputs`: available before the items. `items`: available after them.
    """

    facts: RunFacts
    token: int
    phase: Phase
    attempts: int
    inputs: tuple[Json, ...] = ()
    items: Progress = field(default_factory=Progress)


@dataclass(frozen=True, slots=True)
class ClaimedItem:
    """An item to execute; `attempts` includes this one."""

    position: int
    input: Json
    attempts: int


@dataclass(frozen=True, slots=True)
class ItemsClaim:
    """The right to finish some items while `token` is current."""

    facts: RunFacts
    token: int
    items: tuple[ClaimedItem, ...]


@dataclass(frozen=True, slots=True)
class ItemEnd:
    """An item's result: an output, a skip reason, or an error."""

    position: int
    status: ItemStatus
    output: Json = None
    reason: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class RunEnd:
    """A run's result. `redo_count`: the next run's place in the chain, if one follows."""

    status: RunStatus
    closing: Json = None
    reason: str | None = None
    error: str | None = None
    redo: RedoStatus = RedoStatus.NONE
    redo_count: int | None = None
    redo_after_s: float = 0.0


@dataclass(frozen=True, slots=True)
class RunState:
    """The state of a run that could not be claimed.

    `held`: a worker has it or some of its items. `reported`: its task has reported its end. `began`: one of
    its stages was entered. `why`: its error or reason. `waits_s`: time until it can start. `holders`: number
    of workers with its unfinished items.
    """

    status: RunStatus
    phase: Phase
    urgency: Urgency
    held: bool
    reported: bool
    began: bool
    why: str | None
    waits_s: float
    holders: int | None


@dataclass(frozen=True, slots=True)
class LostShare:
    """A task with a share of a run's items whose worker died."""

    task_id: str
    run_id: str
    flow: str
    urgency: Urgency


@dataclass(frozen=True, slots=True)
class Unrun:
    """A run that ended before any of its tasks ran: blocked or canceled."""

    run_id: str
    task_id: str
    flow: str
    status: RunStatus
    why: str | None


@dataclass(frozen=True, slots=True)
class Swept:
    """The result of a sweep for lost messages."""

    hints: tuple[Hint, ...] = ()
    shares: tuple[LostShare, ...] = ()
    unrun: tuple[Unrun, ...] = ()


class Deferred(StrEnum):
    """Items deferred while turns wait."""

    ITEMS = "items"


class Recorded(StrEnum):
    """The result of recording item results."""

    LOST = "lost"
    """The claim is no longer current; nothing was written."""
    MORE = "more"
    """Other items are unfinished."""
    ALL = "all"
    """All items are finished: `after_all` can start."""
