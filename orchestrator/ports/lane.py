"""The lane: one holder per session, turns in order, commits fenced by token and epoch (RT-2 … RT-4)."""

from typing import Protocol

from orchestrator.turns.approval import ApprovalRecord, Decision
from orchestrator.turns.effect import Effect, LedgerEntry
from orchestrator.turns.lease import Committed, Lease, Said, TurnCommit
from orchestrator.turns.step import Step, UnknownOutcome
from orchestrator.types import FlowId, SessionId, TurnId


class Lane(Protocol):
    """A session's queue of turns as a worker sees it. Every method raises Unavailable."""

    async def claim(self, session_id: SessionId) -> Lease | None:
        """Lease the lane and take up its next turn in one round trip.

        Marks the turn running and counts the attempt. A turn that is found running has lost its worker: that is a
        crash and no attempt, and after a second one only a process that is alone takes it (RT-26). A turn whose
        attempts are used up, or that crashed alone, is quarantined here and the next one is taken. None: nothing to
        do, a predecessor in `sequence` is missing, or another holder's lease is valid.
        """
        ...

    async def commit(self, lease: Lease, commit: TurnCommit) -> Committed:
        """Write everything one turn changed, in one transaction, and take up the next turn or
        release the lane.

        Raises:
            LaneLost: token or epoch are no longer current; nothing was written.
        """
        ...

    async def abandon(self, lease: Lease, *, error: str | None = None) -> None:
        """Give the lane back without a commit; the turn is queued again (its attempt counts when
        `error` is given, else it does not).
        """
        ...

    async def record(
        self,
        lease: Lease,
        turn_id: TurnId,
        step: Step,
        entry: LedgerEntry | None = None,
        heard: int | None = None,
    ) -> bool | UnknownOutcome:
        """Insert or finish one journal step under the fence, with its line of the ledger if it has one.

        False: neither was written, for a turn with a higher `seq` than `heard` was sent by `understand` meanwhile.
        An outcome: nor was either, for another branch of the family has made the same call since it was looked for;
        one that is at work there is waited for. Without `heard`, and without an entry, neither is looked at.
        Raises LaneLost; then neither was written.
        """
        ...

    async def said_meanwhile(self, lease: Lease) -> Said:
        """What was said to the turn at work (RT-5): of the turns after it those sent by `understand`, in order, up to
        the first that was sent otherwise or whose predecessor is missing.
        """
        ...

    async def answer_beside(self, lease: Lease, turn_id: TurnId, commit: TurnCommit) -> bool:
        """End a waiting turn with its answer while an earlier one is at work: result, utterances and events, and
        nothing of the state. False: it does not wait any more, or the lane is lost; nothing was written.
        """
        ...

    async def find_effect(self, lease: Lease, effect: Effect) -> LedgerEntry | None:
        """The session's line of the ledger for an effect, whichever turn had it (RT-10).

        Without one that stands, that of a call with the same tool and arguments in another branch of its family, which
        this session's ledger does not know: as done or unknown, with that session's identifier and without a result, so
        that it is looked into before it is made here (ST-4). While it is at work there, its end is waited for.
        """
        ...

    async def adopt_effect(
        self, lease: Lease, turn_id: TurnId, step_key: str, *, fingerprint: str, flow_id: FlowId
    ) -> LedgerEntry | None:
        """Give the line that an earlier attempt of this turn wrote to the flow of this attempt.

        A flow that the turn itself started has a new identifier in each attempt. None: no such line.
        Raises LaneLost.
        """
        ...

    async def mark_compensated(self, lease: Lease, fingerprint: str) -> None:
        """An effect that was done has been undone, for every branch that knows of it. Raises LaneLost."""
        ...

    async def settle_effect(self, lease: Lease, entry: LedgerEntry) -> None:
        """Write the status and the result of a line that is there, as an operator says. Raises LaneLost."""
        ...

    async def renew(self) -> list[tuple[SessionId, TurnId]]:
        """Prolong every lease this worker holds, in one statement; returns the turns among them
        that somebody asked to cancel, or said something to.
        """
        ...

    async def sweep(self, *, grace_s: float, limit: int = 500) -> list[SessionId]:
        """Free the leases of dead workers, fail gaps that waited too long, and name the sessions
        with work that nobody holds and that waited longer than `grace_s` (the reconciler).
        """
        ...

    async def decide_approval(
        self, lease: Lease, approval_id: str, decision: Decision
    ) -> ApprovalRecord | None:
        """Decide a pending approval, once; gives it as it then stands, whoever decided it (PX-17).

        None: there is no such approval in this session.
        """
        ...
