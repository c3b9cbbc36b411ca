"""Classify mid-turn messages, and stop the running turn if a message changes or cancels its task (RT-5).

The journal calls `listen` before a call that has a side effect or can't be repeated. The lane runner calls it when a
lease renewal reports a new message or a cancellation.
"""

from orchestrator.errors import Overtaken, TurnCancelled
from orchestrator.ports.lane import Lane
from orchestrator.runtime.journal import Journal, Meaning
from orchestrator.telemetry import get_logger
from orchestrator.turns.lease import Work

_log = get_logger(__name__)


async def listen(lane: Lane, journal: Journal) -> int:
    """Classify mid-turn messages up to the first message that must wait. Return the session's last `seq`.

    Raises Unavailable, or, if the running turn must stop, Overtaken or TurnCancelled.
    """
    said = await lane.said_meanwhile(journal.lease)
    if said.cancelled:
        raise TurnCancelled("The turn was canceled.")
    for work in said.turns:
        match await _hear(journal, work):
            case Meaning.STOPS:
                raise Overtaken(f"Turn {work.turn_id} changed or canceled this turn's task.")
            case Meaning.TAKES_BACK:
                raise Overtaken(f"Turn {work.turn_id} rolled back this turn.", takes_back=True)
            case Meaning.NOTHING:
                continue
            case Meaning.WAITS:
                break
    return said.upto


async def _hear(journal: Journal, work: Work) -> Meaning:
    """Classify a message. If classification fails, the message waits for its own turn."""
    if journal.at_work is None or journal.stopped:
        return Meaning.WAITS
    hear, at_work = journal.at_work
    try:
        return await hear(at_work, work)
    except Exception:  # noqa: BLE001 - an unreadable message must not harm the running turn
        _log.exception("Could not classify a mid-turn message.", turn=work.turn_id)
        return Meaning.WAITS
