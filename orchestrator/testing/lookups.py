"""What the lane in memory looks up: what was said while a turn was at work, and what was done before it."""

from dataclasses import replace
from itertools import takewhile

from orchestrator.testing.store import MemoryStore, MemoryTurn
from orchestrator.turns.effect import Effect, LedgerEntry, LedgerStatus
from orchestrator.turns.lease import Lease, Said, Work


def said_meanwhile(store: MemoryStore, lease: Lease) -> Said:
    """See the lane's port."""
    session, mine = store.turn(lease.tenant_id, lease.work.turn_id)
    numbers = {None, *(turn.client_sequence for turn in session.turns)}

    def is_heard(turn: MemoryTurn) -> bool:
        number = turn.client_sequence or 1
        return turn.interjects and (number == 1 or number - 1 in numbers)

    later = (turn for turn in session.unfinished() if turn.seq > mine.seq)
    waiting = (
        Work(turn.turn_id, turn.seq, turn.input, 0, lease.work.deadline_s)
        for turn in takewhile(is_heard, later)
    )
    return Said(session.next_seq - 1, mine.cancel_requested, tuple(waiting))


def find_effect(store: MemoryStore, lease: Lease, effect: Effect) -> LedgerEntry | None:
    """See the lane's port."""
    ledger, own_root = store.effects, lease.root or lease.session_id
    if (lease.session_id, effect.fingerprint) in ledger:
        return ledger[lease.session_id, effect.fingerprint]
    if not store.has_branches:
        return None
    known = {entry.idempotency_key for (owner, _), entry in ledger.items() if owner == lease.session_id}
    for (owner, _), entry in ledger.items():
        same = (entry.tool_id, entry.arguments) == (effect.tool_id, effect.arguments)
        family = (store.sessions[owner].root or owner) == own_root
        undone = entry.status in {LedgerStatus.FAILED, LedgerStatus.COMPENSATED}
        if family and same and not undone and entry.idempotency_key not in known:
            return replace(entry, status=LedgerStatus.UNKNOWN, result=None, of_session=owner)
    return None
