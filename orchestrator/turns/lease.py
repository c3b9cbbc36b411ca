"""What the holder of a lane has in hand, and what it gives back."""

from dataclasses import dataclass

import orjson

from orchestrator.dialogue.storage.serialization import Outline, rebuild
from orchestrator.turns.approval import ApprovalRecord, ClosedApproval
from orchestrator.turns.event import Event
from orchestrator.turns.plan import PlanRecord, PlanRevision
from orchestrator.turns.step import Step
from orchestrator.turns.turn import TurnInput, TurnStatus
from orchestrator.types import Epoch, JsonObject, SessionId, TenantId, TurnId, UserId


@dataclass(frozen=True, slots=True)
class Work:
    """The next turn of a claimed lane.

    `attempts` counts this one, from 1. `steps` holds the journal of earlier attempts, also of those that were
    handed back and do not count. `deadline_s` is what is left of the turn's time, in seconds.
    """

    turn_id: TurnId
    seq: int
    input: TurnInput
    attempts: int
    deadline_s: float
    cancelled: bool = False
    waited_s: float = 0.0
    """How long ago it was accepted, in seconds."""
    steps: tuple[Step, ...] = ()
    failure: str | None = None
    """Why its attempts are used up: it is ended now with what they did, and calls nothing any more (RT-25)."""


@dataclass(frozen=True, slots=True)
class Said:
    """What was said since the turn at work was accepted, as far as it is to be read now (RT-5).

    `upto`: the session's last `seq` when it was looked at. `cancelled`: the turn at work is to be cancelled.
    """

    upto: int
    cancelled: bool = False
    turns: tuple[Work, ...] = ()


@dataclass(frozen=True, slots=True)
class Lease:
    """A claimed lane: the right to commit while `token` and `epoch` are current (RT-2, RT-3).

    `state` is the serialised working state, of the epoch before the first of `patches`, which lead to the present one;
    None for a new session. `root`: of a branch, where its family begins.
    """

    session_id: SessionId
    tenant_id: TenantId
    user_id: UserId | None
    domain: str
    token: int
    epoch: Epoch
    state: bytes | None
    work: Work
    root: SessionId | None = None
    patches: tuple[JsonObject, ...] = ()

    @property
    def present_state(self) -> bytes | None:
        """The working state with all patches applied."""
        if self.state is None or not self.patches:
            return self.state
        return orjson.dumps(rebuild(orjson.loads(self.state), self.patches))


AGENT = "agent"
"""The role of whoever answers."""
OPERATOR = "operator"
"""The role of whoever repairs."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """One line of the conversation; role is user, agent, system or operator. A turn has an input and an answer."""

    role: str
    form: str
    content: str


@dataclass(frozen=True, slots=True)
class OutboxEntry:
    """Something to send after the commit, and again until it is acknowledged (RT-4).

    `kind`: ``internal_flow`` or ``webhook``.
    """

    kind: str
    payload: JsonObject


@dataclass(frozen=True, slots=True)
class ArchivedFlow:
    """A flow that left the stack, as serialised, with its outputs."""

    flow_id: str
    dact: str
    state: str
    reason: str | None
    body: JsonObject


@dataclass(frozen=True, slots=True)
class FrameRecord:
    """A display frame as serialised; one per flow, the newest wins."""

    frame_id: str
    flow_id: str
    body: JsonObject


@dataclass(frozen=True, slots=True)
class TurnCommit:
    """Everything one turn changes, written in one transaction under the fence (RT-4).

    `state` is the whole working state; `diff` leads to it from the state before, and stores may keep nothing else;
    `snapshot` asks for a full copy in the history as well.
    """

    status: TurnStatus
    state: bytes
    diff: bytes
    snapshot: bool
    result: JsonObject
    error: str | None = None
    utterances: tuple[Utterance, ...] = ()
    archived: tuple[ArchivedFlow, ...] = ()
    frames: tuple[FrameRecord, ...] = ()
    plans: tuple[PlanRecord, ...] = ()
    plan_revisions: tuple[PlanRevision, ...] = ()
    events: tuple[Event, ...] = ()
    outbox: tuple[OutboxEntry, ...] = ()
    approvals: tuple[ApprovalRecord, ...] = ()
    """Asked for in this turn."""
    closed_approvals: tuple[ClosedApproval, ...] = ()
    signals: tuple[JsonObject, ...] = ()
    """What was predicted, checked, called and recovered on the way, for evaluation (CO-6)."""
    outline: Outline | None = None
    """Of `state`; None: as before the turn."""


@dataclass(frozen=True, slots=True)
class Committed:
    """A commit that held. `next` is the session's next turn; None: the lane was released."""

    epoch: Epoch
    events: tuple[Event, ...]
    """The commit's events with their sequence numbers."""
    next: Work | None
