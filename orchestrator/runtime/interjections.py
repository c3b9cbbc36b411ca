"""What is said while a turn is at work: reads it against that turn, and lets it stop, go on, or answers beside (RT-5).

When it is read is the business of the journal, which begins no call with an effect before, and of the lane's renewals.
"""

from orchestrator.errors import Overtaken, TurnCancelled
from orchestrator.ports.lane import Lane
from orchestrator.ports.turns import LiveEvents
from orchestrator.runtime.journal import Journal, Meaning
from orchestrator.telemetry import get_logger
from orchestrator.turns.lease import TurnCommit, Work

_log = get_logger(__name__)


async def listen(lane: Lane, live: LiveEvents, journal: Journal) -> int:
    """Read what was said meanwhile, in order, until something of it is to wait; gives the `seq` that was looked up to.

    Raises:
        Overtaken, TurnCancelled: the turn at work is to stop.
        Unavailable: the store does not answer.
    """
    lease = journal.lease
    said = await lane.said_meanwhile(lease)
    if said.cancelled:
        raise TurnCancelled("The turn was cancelled.")
    for work in said.turns:
        match await _hear(journal, work):
            case Meaning.STOPS:
                raise Overtaken(f"Turn {work.turn_id} has changed or given up what this one was at.")
            case Meaning.TAKES_BACK:
                raise Overtaken(f"Turn {work.turn_id} has taken this one back.", takes_back=True)
            case Meaning.NOTHING:
                continue
            case Meaning.WAITS:
                break
            case TurnCommit() as answer:
                if await lane.answer_beside(lease, work.turn_id, answer):
                    await live.publish(lease.session_id, ())
    return said.upto


async def _hear(journal: Journal, work: Work) -> Meaning | TurnCommit:
    """Find out what a message means; one that breaks its reader waits, and is read again in its own turn."""
    if journal.at_work is None or journal.stopped:
        return Meaning.WAITS
    hear, at_work = journal.at_work
    try:
        return await hear(at_work, work)
    except Exception:  # noqa: BLE001 - what cannot be read now does no harm to the turn at work
        _log.exception("What was said meanwhile could not be read.", turn=work.turn_id)
        return Meaning.WAITS
