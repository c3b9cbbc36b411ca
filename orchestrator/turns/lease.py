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

    Args:
        attempts: the number of attempts, including this attempt.
        deadline_s: remaining time of the turn, in seconds.
        waited_s: seconds since the turn was accepted.
        steps: the journal of all earlier attempts, including attempts that did not count.
        accepted_at: acceptance time by the store's clock, in Unix seconds. Every attempt uses this time as the
            current time (RT-29).
        failure: why the turn has no attempts left, or None. With a `failure`, the turn must end with its
            results so far, without further calls (RT-25).
    """

    turn_id: TurnId
    seq: int
    input: TurnInput
    attempts: int
    deadline_s: float
    cancelled: bool = False
    waited_s: float = 0.0
    steps: tuple[Step, ...] = ()
    accepted_at: float = 0.0
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """Mid-turn messages for the running turn (RT-5).

    Args:
        upto: the `seq` of the session's last turn when the messages were read.
        cancelled: True if the running turn must stop.
    """

    upto: int
    cancelled: bool = False
    turns: tuple[Work, ...] = ()


@dataclass(frozen=True, slots=True)
class Lease:
    """A claimed session lane: the right to commit while `token` and `epoch` are current (RT-2, RT-3).

    Args:
        state: the serialized working state before `patches`, or None for a new session.
        root: the root of the fork tree, or None if the session isn't a fork.
        patches: changes that lead from `state` to the current working state.
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
        """Return the working state with all patches applied, or None for a new session."""
        if self.state is None or not self.patches:
            return self.state
        return orjson.dumps(rebuild(orjson.loads(self.state), self.patches))


AGENT = "agent"
OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Utterance:
    """A message in the conversation: a turn's input or answer.

    `role`: ``user``, ``agent``, ``system`` or ``operator``. `form`: as in `TurnInput`.
    """

    role: str
    form: str
    content: str


@dataclass(frozen=True, slots=True)
class OutboxEntry:
    """A message that is sent after the commit and repeated until it is acknowledged (RT-4).

    `kind`: ``internal_flow`` to start background flows, or ``notes`` to add scratchpad entries.
    """

    kind: str
    payload: JsonObject


@dataclass(frozen=True, slots=True)
class ArchivedFlow:
    """A serialized flow that was removed from the stack, with its outputs."""

    flow_id: str
    dact: str
    state: str
    reason: str | None
    body: JsonObject


@dataclass(frozen=True, slots=True)
class FrameRecord:
    """A serialized display frame. Only the latest frame of each flow is stored."""

    frame_id: str
    flow_id: str
    body: JsonObject


@dataclass(frozen=True, slots=True)
class TurnCommit:
    """All changes of a turn, written in one fenced transaction (RT-4).

    Args:
        state: the full working state.
        diff: the change from the previous state. Stores may keep only this change.
        snapshot: True if the history also stores the full state.
        approvals: approvals requested in this turn.
        signals: predictions, checks, calls and recoveries during the turn, for evaluation (CO-6).
        outline: a summary of `state` for maintenance flows, or None if the turn did not change the summary.
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
    closed_approvals: tuple[ClosedApproval, ...] = ()
    signals: tuple[JsonObject, ...] = ()
    outline: Outline | None = None


@dataclass(frozen=True, slots=True)
class Committed:
    """A successful commit.

    Args:
        events: the commit's events with their numbers.
        next: the session's next turn, already claimed, or None if the lane was released.
        awaited: True if Celery tasks wait for this turn's end. The messages that end these tasks are in the outbox.
    """

    epoch: Epoch
    events: tuple[Event, ...]
    next: Work | None
    awaited: bool = False
