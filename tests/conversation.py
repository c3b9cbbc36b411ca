"""Turns in sessions over real stores: submitted like the gateway does, run by workers, and awaited."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from orchestrator.adapters.models.pool import ModelPool
from orchestrator.adapters.models.providers import Endpoint
from orchestrator.bootstrap import Ports
from orchestrator.turns.turn import FINISHED, Receipt, Submission, TurnInput, TurnRecord
from orchestrator.types import DEFAULT_TENANT, JsonObject, SessionId
from parley.testing.scripted_model import Rule, Script, ScriptedModel

WITHIN_S: Final = 60.0
"""Time limit for an answer on a busy machine, in seconds."""


async def submit(ports: Ports, session: str, text: str, domain: str | None = None, **more: Any) -> Receipt:
    """Submit a turn and wake a worker.

    `domain`: the domain of a new session. Default: the first domain of the ports. `more`: fields of the
    submission.
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
    """Submit a turn and return it when it has ended."""
    receipt = await submit(ports, session, text, domain, **more)
    turn = await ports.waiter(DEFAULT_TENANT, SessionId(session), receipt.turn_id, within_s)
    assert turn.status in FINISHED, turn
    return turn


async def say(ports: Ports, session: str, text: str, domain: str | None = None, **more: Any) -> JsonObject:
    """Submit a turn and return its turn object when it has ended."""
    turn = await run_turn(ports, session, text, domain, **more)
    assert turn.result is not None, turn
    return turn.result


@asynccontextmanager
async def scripted(script: Script | Rule, **options: Any) -> AsyncIterator[tuple[ScriptedModel, ModelPool]]:
    """Serve a scripted model over HTTP and open the models of a process that calls it.

    `options`: of the pool.
    """
    followed = Script(rules=(script,)) if isinstance(script, Rule) else script
    with ScriptedModel(followed) as model:
        pool = ModelPool({"default": Endpoint(base_url=model.base_url)}, model="scripted", **options)
        try:
            yield model, pool
        finally:
            await pool.aclose()
