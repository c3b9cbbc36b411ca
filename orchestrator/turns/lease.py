"""The claim of a lane's holder, and its commit."""

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

    `attempts`: attempts including this one, from 1. `steps`: the journal of earlier attempts, including
    uncounted ones. `deadline_s`: remaining time of the turn, in seconds.
    """

    turn_id: TurnId
    seq: int
    input: TurnInput
    attempts: int
    deadline_s: float
    cancelled: bool = False
    waited_s: float = 0.0
    """Seconds since the turn was accepted."""
    steps: tuple[Step, ...] = ()
    accepted_at: float = 0.0
    """Time of acceptance in Unix seconds of the store's clock: the time of the turn in every attempt (RT-29)."""
    failure: str | None = None
    """Reason why no attempts are left: end the turn with what they did, without any further call (RT-25)."""


@dataclass(frozen=True, slots=True)
class Said:
    """Mid-turn messages to read now (RT-5).

    `upto`: the session's last `seq` at the time. `cancelled`: the running turn must be canceled.
    """

    upto: int
    cancelled: bool = False
    turns: tuple[Work, ...] = ()


@dataclass(frozen=True, slots=True)
class Lease:
    """A claimed lane: the right to commit while `token` and `epoch` are current (RT-2, RT-3).

    `state`: the serialized working state before the first of `patches`, which lead to the current one; None
    for a new session. `root`: for a fork, the root of its fork tree.
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
        """Return the working state with all patches applied."""
        if self.state is None or not self.patches:
            return self.state
        return orjson.dumps(rebuild(orjson.loads(self.state), self.patches))


AGENT = "agent"
"""The assistant's role."""
OPERATOR = "operator"
"""The operator's role."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """A line of the conversation, with the role user, agent, system or operator.

    A turn has an input and an answer.
    """

    role: str
    form: str
    content: str


@dataclass(frozen=True, slots=True)
class OutboxEntry:
    """A message to send after the commit, until it is acknowledged (RT-4).

    `kind`: ``internal_flow`` or ``webhook``.
    """

    kind: str
    payload: JsonObject


@dataclass(frozen=True, slots=True)
class ArchivedFlow:
    """A serialized flow that left the stack, with its outputs."""

    flow_id: str
    dact: str
    state: str
    reason: str | None
    body: JsonObject


@dataclass(frozen=True, slots=True)
class FrameRecord:
    """A serialized display frame; one per flow, the newest wins."""

    frame_id: str
    flow_id: str
    body: JsonObject


@dataclass(frozen=True, slots=True)
class TurnCommit:
    """Everything a turn changes, written in one fenced transaction (RT-4).

    `state`: the full working state. `diff`: the change from the previous state; stores may keep only this.
    `snapshot`: also store a full copy in the history.
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
    """Requested in this turn."""
    closed_approvals: tuple[ClosedApproval, ...] = ()
    signals: tuple[JsonObject, ...] = ()
    """Predictions, checks, calls and recoveries along the way, for evaluation (CO-6)."""
    outline: Outline | None = None
    """Outline of `state`; None if the turn did not change it."""


@dataclass(frozen=True, slots=True)
class Committed:
    """A successful commit. `next`: the session's next turn, or None if the lane was released."""

    epoch: Epoch
    events: tuple[Event, ...]
    """The commit's events with their sequence numbers."""
    next: Work | None
    awaited: bool = False
    """Broker tasks end with the turn and are in the outbox."""
