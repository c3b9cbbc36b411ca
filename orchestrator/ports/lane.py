"""The session lane: one holder per session, turns in order, commits fenced by token and epoch (RT-2 … RT-4)."""

from typing import Protocol

from orchestrator.turns.approval import ApprovalRecord, Decision
from orchestrator.turns.effect import Effect, LedgerEntry
from orchestrator.turns.lease import Committed, Lease, Said, TurnCommit
from orchestrator.turns.step import Step
from orchestrator.types import FlowId, SessionId, TurnId


class Lane(Protocol):
    """A session's turn queue as a worker sees it. Every method raises Unavailable."""

    async def claim(self, session_id: SessionId) -> Lease | None:
        """Lease the lane and claim its next turn in one round trip.

        Marks the turn as running and counts the attempt. A turn found running has lost its worker: that
        counts as a crash, not an attempt, and after a second one only a process for suspects takes it
        (RT-26). A turn without attempts left, or that crashed alone, is quarantined here and the next one is
        claimed. Returns None if there is nothing to do, a predecessor in `sequence` is missing, or another
        lease is valid.
        """
        ...

    async def commit(self, lease: Lease, commit: TurnCommit) -> Committed:
        """Write everything a turn changed in one transaction, and claim the next turn or release the lane.

        Raises:
            LaneLost: token or epoch is no longer current; nothing was written.
        """
        ...

    async def abandon(self, lease: Lease, *, error: str | None = None) -> None:
        """Release the lane without a commit and queue the turn again.

        The attempt only counts with an `error`.
        """
        ...

    async def record(
        self,
        lease: Lease,
        turn_id: TurnId,
        step: Step,
        entry: LedgerEntry | None = None,
        heard: int | None = None,
    ) -> bool:
        """Write a journal step under the fence, with its ledger entry if any.

        Returns False, without changes, if an `understand` turn with a higher `seq` than `heard` arrived
        meanwhile. Not checked without `heard` or without an entry. Raises LaneLost, without changes.
        """
        ...

    async def said_meanwhile(self, lease: Lease) -> Said:
        """Return messages for the running turn (RT-5).

        These are later turns sent with `understand`, in order, up to the first with another rule or a missing
        predecessor.
        """
        ...

    async def find_effect(self, lease: Lease, effect: Effect) -> LedgerEntry | None:
        """Return the session's ledger entry for a side effect of any turn (RT-10)."""
        ...

    async def adopt_effect(
        self, lease: Lease, turn_id: TurnId, step_key: str, *, fingerprint: str, flow_id: FlowId
    ) -> LedgerEntry | None:
        """Move the ledger entry of an earlier attempt to this attempt's flow.

        A flow that the turn itself started has a new ID in each attempt. Returns None if there is no entry.
        Raises LaneLost.
        """
        ...

    async def mark_compensated(self, lease: Lease, fingerprint: str) -> None:
        """Record that a side effect was undone, for every fork that has it. Raises LaneLost."""
        ...

    async def resolve_effect(self, lease: Lease, entry: LedgerEntry) -> None:
        """Set the status and result of an existing entry, as an operator decided. Raises LaneLost."""
        ...

    async def renew(self) -> list[tuple[SessionId, TurnId]]:
        """Renew all leases of this worker in one statement; return their turns with a cancellation or a new message."""
        ...

    async def sweep(self, *, grace_s: float, limit: int = 500) -> list[SessionId]:
        """Return sessions with unclaimed work older than `grace_s`, as the reconciler does.

        Also frees leases of dead workers and fails overdue gaps.
        """
        ...

    async def decide_approval(
        self, lease: Lease, approval_id: str, decision: Decision
    ) -> ApprovalRecord | None:
        """Decide a pending approval once; return it with the decision that holds (PX-17).

        Returns None if the session has no such approval.
        """
        ...
