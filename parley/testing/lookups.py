"""Mid-turn messages in a `MemoryStore`."""

from itertools import takewhile

from orchestrator.turns.lease import Lease, Said, Work
from parley.testing.store import MemoryStore, MemoryTurn


def said_meanwhile(store: MemoryStore, lease: Lease) -> Said:
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
