"""What the lane in memory looks up: what was said while a turn was at work, and what was done before it."""

import asyncio
from dataclasses import replace
from itertools import takewhile

from orchestrator.testing.store import MemoryStore, MemoryTurn
from orchestrator.turns.effect import MAY_BE_HAD, Effect, LedgerEntry, LedgerStatus
from orchestrator.turns.lease import Lease, Said, Work
from orchestrator.turns.step import UnknownOutcome
from orchestrator.turns.turn import TurnStatus

_LOOK_AGAIN_S = 0.01


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


async def find_effect(store: MemoryStore, lease: Lease, effect: Effect) -> LedgerEntry | None:
    """See the lane's port."""
    found, is_at_work = _look(store, lease, effect)
    while is_at_work:
        await asyncio.sleep(_LOOK_AGAIN_S)
        found, is_at_work = _look(store, lease, effect)
    return found


async def begun_elsewhere(store: MemoryStore, lease: Lease, entry: LedgerEntry) -> UnknownOutcome | None:
    """What another branch has made of a call that is about to begin here, once it is not at work there any more."""
    found, waited = _look(store, lease, entry)
    is_at_work = waited
    while is_at_work:
        await asyncio.sleep(_LOOK_AGAIN_S)
        found, is_at_work = _look(store, lease, entry)
    if found is None or found.status not in MAY_BE_HAD:
        return None
    is_news = found.session_id != lease.session_id and found.idempotency_key != entry.idempotency_key
    elsewhere = found.status is LedgerStatus.DONE and found.session_id != lease.session_id
    outcome = UnknownOutcome(entry.step_key, found.idempotency_key, elsewhere=elsewhere)
    return outcome if waited or is_news else None


def _look(store: MemoryStore, lease: Lease, call: Effect | LedgerEntry) -> tuple[LedgerEntry | None, bool]:
    """The line of the ledger, and whether another branch makes the call now."""
    ledger, own_root = store.effects, lease.root or lease.session_id
    own = ledger.get((lease.session_id, call.fingerprint))
    if not store.has_branches:
        return own, False
    known = {entry.idempotency_key for (owner, _), entry in ledger.items() if owner == lease.session_id}
    alike = [
        entry
        for (owner, _), entry in ledger.items()
        if owner != lease.session_id
        and (store.sessions[owner].root or owner) == own_root
        and (entry.tool_id, entry.arguments) == (call.tool_id, call.arguments)
        and entry.status in MAY_BE_HAD
    ]
    at_work = [entry for entry in alike if _is_at_work(store, lease, entry)]
    theirs = [entry for entry in (*at_work, *alike) if entry.idempotency_key not in known]
    if theirs and (own is None or own.status not in MAY_BE_HAD):
        status = LedgerStatus.DONE if theirs[0].status is LedgerStatus.DONE else LedgerStatus.UNKNOWN
        own = replace(theirs[0], status=status, result=None, of_session=theirs[0].session_id)
    return own, bool(at_work)


def _is_at_work(store: MemoryStore, lease: Lease, entry: LedgerEntry) -> bool:
    session, turn = store.turn(lease.tenant_id, entry.turn_id)
    held = session.lease_until is not None and session.lease_until >= store.clock()
    return held and (entry.status, turn.status) == (LedgerStatus.STARTED, TurnStatus.RUNNING)
