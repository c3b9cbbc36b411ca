"""The port for session lanes: one worker per session, turns in order, commits fenced by token and epoch (RT-2…RT-4)."""

from typing import Protocol

from orchestrator.turns.approval import ApprovalRecord, Decision
from orchestrator.turns.effect import Effect, LedgerEntry
from orchestrator.turns.lease import Committed, Lease, Said, TurnCommit
from orchestrator.turns.step import Step
from orchestrator.types import FlowId, SessionId, TurnId


class Lane(Protocol):
    """A worker's access to session lanes. Every method can raise Unavailable."""

    async def claim(self, session_id: SessionId) -> Lease | None:
        """Lease the session lane and claim its next turn in one round trip.

        Mark the turn as running and count the attempt. If the turn is already marked as running, its worker
        died, which counts as a crash, not as an attempt. After its second crash, the turn is a suspected poison
        turn, which only an isolated process claims (RT-26). A turn that crashes there, or has no attempts
        left, is quarantined, and the next turn is claimed. If such a turn has side effects, it may be claimed
        one last time, with `Work.failure` set.

        Return None if no turn can run here (for example, because predecessors in `sequence` are missing) or
        another lease is valid.
        """
        ...

    async def commit(self, lease: Lease, commit: TurnCommit) -> Committed:
        """Write a turn's changes and claim the next turn or release the lane, in one transaction.

        Raises:
            LaneLost: the token or epoch is no longer current; nothing was written.
        """
        ...

    async def abandon(self, lease: Lease, *, error: str | None = None) -> None:
        """Release the lane without a commit, and requeue the turn.

        `error`: why the attempt failed. If it is None, the attempt doesn't count.
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
        """Write a journal step and its ledger entry, if any, while the lease is current.

        `heard`: the `seq` up to which the worker has read mid-turn messages. Return False, without changes, if
        `entry` and `heard` are set and an `understand` turn with a higher `seq` has arrived. Raises LaneLost.
        """
        ...

    async def said_meanwhile(self, lease: Lease) -> Said:
        """Return messages that arrived while the turn was running (RT-5).

        The messages are later turns submitted with `understand`, in order, up to the first turn with another rule
        or a missing predecessor.
        """
        ...

    async def find_effect(self, lease: Lease, effect: Effect) -> LedgerEntry | None:
        """Return the session's ledger entry for a side effect, from any turn, or None (RT-10)."""
        ...

    async def adopt_effect(
        self, lease: Lease, turn_id: TurnId, step_key: str, *, fingerprint: str, flow_id: FlowId
    ) -> LedgerEntry | None:
        """Assign an earlier attempt's ledger entry to this attempt's flow.

        A flow that a turn starts gets a new ID in each attempt. `flow_id`: the new ID. Return the entry, or None
        if it doesn't exist. Raises LaneLost.
        """
        ...

    async def mark_compensated(self, lease: Lease, fingerprint: str) -> None:
        """Record that the session's side effect with this fingerprint was undone. Raises LaneLost."""
        ...

    async def resolve_effect(self, lease: Lease, entry: LedgerEntry) -> None:
        """Update an existing ledger entry with the status and result that an operator set. Raises LaneLost."""
        ...

    async def renew(self) -> list[tuple[SessionId, TurnId]]:
        """Renew this worker's leases. Return its running turns that have a cancellation request or mid-turn message."""
        ...

    async def sweep(self, *, grace_s: float, limit: int = 500) -> list[SessionId]:
        """Return dead workers' sessions, and sessions whose work was unclaimed for over `grace_s` seconds.

        Also release dead workers' leases, and fail turns whose predecessor in `sequence` is overdue.
        """
        ...

    async def decide_approval(
        self, lease: Lease, approval_id: str, decision: Decision
    ) -> ApprovalRecord | None:
        """Decide a pending approval, and return the approval. Only the first decision takes effect (PX-17).

        Return None if the session has no such approval.
        """
        ...
