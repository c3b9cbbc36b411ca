"""What is said to a session while a turn of it is at work: read, and answered beside that turn (RT-5)."""

from sqlalchemy import insert, select, update

from orchestrator.adapters.postgres.lane_lock import append_event, lock_lane
from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.statements import statement
from orchestrator.adapters.postgres.tables import NOW, lanes, turns, utterances
from orchestrator.turns.lease import AGENT, Lease, Said, TurnCommit, Work
from orchestrator.turns.turn import TurnInput, TurnKind, TurnStatus, require_transition
from orchestrator.types import TurnId


async def said_meanwhile(database: Database, lease: Lease) -> Said:
    """See the lane's port."""
    named = {"session_id": lease.session_id, "turn_id": lease.work.turn_id}
    upto, cancelled, waiting = 0, False, list[Work]()
    for row in await database.fetch_all(statement("said_meanwhile"), named):
        upto, cancelled, turn_id, seq, kind, form, text, action, is_heard = row
        if turn_id is None or not is_heard:
            break
        given = TurnInput(text=text, action=action, form=form, kind=TurnKind(kind))
        waiting.append(Work(turn_id, seq, given, attempts=0, deadline_s=lease.work.deadline_s))
    return Said(upto, cancelled, tuple(waiting))


async def answer_beside(database: Database, lease: Lease, turn_id: TurnId, commit: TurnCommit) -> bool:
    """See the lane's port. The lane keeps its epoch: nothing of the state changes."""
    async with database.transaction() as connection:
        lane = await lock_lane(connection, lease.session_id)
        if lane is None or (lane.lease_token, lane.epoch) != (lease.token, lease.epoch):
            return False
        turn = (await connection.execute(select(turns).where(turns.c.turn_id == turn_id))).one()
        if turn.status != TurnStatus.QUEUED or turn.merges:
            return False
        require_transition(TurnStatus(turn.status), commit.status)
        ended = {"status": commit.status.value, "result": commit.result, "signals": list(commit.signals)}
        await connection.execute(
            update(turns)
            .where(turns.c.turn_id == turn_id)
            .values(**ended, epoch=lane.epoch, token=lease.token, finished_at=NOW)
        )
        await connection.execute(
            update(lanes)
            .where(lanes.c.session_id == lease.session_id)
            .values(pending=lanes.c.pending - 1, updated_at=NOW)
        )
        said = {line.role == AGENT: line for line in commit.utterances}
        given = said.get(False)
        await connection.execute(
            insert(utterances).values(
                session_id=lease.session_id,
                epoch=lane.epoch,
                seq=turn.seq,
                tenant_id=lease.tenant_id,
                turn_id=turn_id,
                role=given and given.role,
                form=given and given.form,
                content=given and given.content,
                reply=said[True].content,
            )
        )
        for event in commit.events:
            await append_event(connection, lease.session_id, turn_id, event.type, event.payload)
        return True
