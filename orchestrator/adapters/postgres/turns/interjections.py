"""Messages of a session that arrive while one of its turns is running (RT-5)."""

from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.statements import statement
from orchestrator.turns.lease import Lease, Said, Work
from orchestrator.turns.turn import TurnInput, TurnKind


async def said_meanwhile(database: Database, lease: Lease) -> Said:
    named = {"session_id": lease.session_id, "turn_id": lease.work.turn_id}
    upto, cancelled, waiting = 0, False, list[Work]()
    for row in await database.fetch_all(statement("said_meanwhile"), named):
        upto, cancelled, turn_id, seq, kind, form, text, action, is_heard = row
        if turn_id is None or not is_heard:
            break
        given = TurnInput(text=text, action=action, form=form, kind=TurnKind(kind))
        waiting.append(Work(turn_id, seq, given, attempts=0, deadline_s=lease.work.deadline_s))
    return Said(upto, cancelled, tuple(waiting))
