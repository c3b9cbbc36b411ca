"""Turns of sessions over real stores: submitted as the gateway does, run by workers, and waited for."""

from __future__ import annotations

from typing import Any, Final

from orchestrator.bootstrap import Ports
from orchestrator.turns.turn import FINISHED, Receipt, Submission, TurnInput, TurnRecord
from orchestrator.types import DEFAULT_TENANT, JsonObject, SessionId

WITHIN_S: Final = 60.0
"""How long an answer may take on a busy machine."""


async def submit(ports: Ports, session: str, text: str, domain: str | None = None, **more: Any) -> Receipt:
    """Submit a turn and wake a worker. `domain`: of a new session. Default: the first one of the ports.

    `more`: fields of the submission.
    """
    session_id = SessionId(session)
    receipt = await ports.stores.inbox.submit(
        Submission(
            session_id,
            TurnInput(text=text),
            DEFAULT_TENANT,
            create_session=True,
            domain=domain or ports.domains.resolve(None),
            **more,
        )
    )
    await ports.shared.wakeup.offer(session_id)
    return receipt


async def run_turn(
    ports: Ports,
    session: str,
    text: str,
    domain: str | None = None,
    *,
    within_s: float = WITHIN_S,
    **more: Any,
) -> TurnRecord:
    """Submit a turn and return it once it has ended."""
    receipt = await submit(ports, session, text, domain, **more)
    turn = await ports.waiter.finished(DEFAULT_TENANT, SessionId(session), receipt.turn_id, within_s)
    assert turn.status in FINISHED, turn
    return turn


async def say(ports: Ports, session: str, text: str, domain: str | None = None, **more: Any) -> JsonObject:
    """Submit a turn and return its turn object once it has ended."""
    turn = await run_turn(ports, session, text, domain, **more)
    assert turn.result is not None, turn
    return turn.result
