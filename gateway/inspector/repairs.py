"""The repair console: what is wrong with a session, what repairs would change, and making them. For operators.

A repair is a turn of the session, in the order of its lane; releasing the lane, which may be stuck, is not.
"""

import time
from collections.abc import Sequence
from functools import cache
from http import HTTPStatus

from fastapi import APIRouter, Response

from gateway.dependencies import SessionServices, TheApprovals, TheCaller, TheSessions, TheTurns, TurnServices
from gateway.parameters import Wait
from gateway.responses.repairs import Preview, Repaired, Trouble
from orchestrator.adapters.domains.folder import load_domain
from orchestrator.adapters.threads import run_in_thread
from orchestrator.agent import repairs
from orchestrator.agent.repairs import Place, find_faults, load_state
from orchestrator.agent.suggestions import suggest
from orchestrator.dialogue.storage.serialization import diff
from orchestrator.domain.model import Domain
from orchestrator.errors import Refused
from orchestrator.turns.access import Caller
from orchestrator.turns.approval import ApprovalStatus
from orchestrator.turns.repair import (
    GONE_ON,
    REPAIR,
    Change,
    Release,
    Repair,
    RepairOrder,
    WantedRepairs,
)
from orchestrator.turns.turn import (
    FINISHED,
    IfBusy,
    Submission,
    TurnInput,
    TurnKind,
    TurnRecord,
    TurnStatus,
)
from orchestrator.types import Epoch, JsonObject, SessionId, hash_json

router = APIRouter(prefix="/v1/sessions/{session_id}/repairs", tags=["operate"])

RELEASED = "The lane is taken from its holder, and the turn at work is begun again."
_ALONE = "A lane is released by itself: leave the other repairs out."


@cache
def _domain(place: str) -> Domain:
    return load_domain(place).domain


async def _look(sessions: SessionServices, caller: Caller, session_id: SessionId) -> Place:
    """Read all that a repair depends on. Raises NotFound."""
    record = await sessions.store.get(caller.tenant_id, session_id)
    ledger = await sessions.effects.list(caller.tenant_id, session_id, limit=1000)
    domain = await run_in_thread(_domain, sessions.domains.place(record.domain))
    known = {entry.fingerprint: entry for entry in ledger}
    return Place(session_id, domain, record.state or {}, record.epoch, known, caller.name, time.time())


async def _unfinished(turns: TurnServices, caller: Caller, session_id: SessionId) -> list[TurnRecord]:
    named = (TurnStatus.RUNNING, TurnStatus.QUEUED, TurnStatus.QUARANTINED)
    found = [
        await turns.inbox.turns(caller.tenant_id, session_id=session_id, status=status) for status in named
    ]
    return [turn for some in found for turn in some]


@router.get("")
async def list_repairs(
    session_id: SessionId, sessions: TheSessions, turns: TheTurns, approvals: TheApprovals, caller: TheCaller
) -> Trouble:
    """Show operators what is wrong with a session, what is open in it, and the repairs that fit."""
    place = await _look(sessions, caller, session_id)
    waiting = await approvals.list(caller.tenant_id, session_id=session_id, status=ApprovalStatus.PENDING)
    unfinished = await _unfinished(turns, caller, session_id)
    fits = suggest(place)
    for turn in unfinished:
        if turn.status is TurnStatus.RUNNING:
            fits.append({"repair": {"kind": "release"}, "why": f"{turn.turn_id} is being worked on."})
    return Trouble.model_validate(
        {
            "session_id": session_id,
            "epoch": place.epoch,
            "person": place.before.get("person"),
            "wrong": find_faults(load_state(place, place.before)),
            "flows": place.before.get("stack", []),
            "effects": list(place.ledger.values()),
            "approvals": waiting,
            "turns": unfinished,
            "fits": fits,
        }
    )


@router.post("/preview")
async def preview_repairs(
    session_id: SessionId, body: WantedRepairs, sessions: TheSessions, turns: TheTurns, caller: TheCaller
) -> Preview:
    """Say what repairs would change, what the user would be told, and what would keep them from being made."""
    place = await _look(sessions, caller, session_id)
    about: JsonObject = {"session_id": session_id, "epoch": place.epoch}
    if any(isinstance(one, Release) for one in body.repairs):
        running = [
            turn for turn in await _unfinished(turns, caller, session_id) if turn.status is TurnStatus.RUNNING
        ]
        refused = [] if running else ["No turn is being worked on."]
        refused += [_ALONE] if len(body.repairs) > 1 else []
        return Preview(**about, done=[RELEASED], told=None, refused=refused, wrong=[], diff={})
    made = repairs.make_repairs(place, _changes(body.repairs))
    return Preview(
        **about,
        done=made.done,
        told="\n\n".join(made.told) or None,
        refused=made.refused,
        wrong=find_faults(made.after),
        diff=diff(place.before, made.after.serialize()),
    )


def _changes(wanted: Sequence[Repair]) -> list[Change]:
    return [one for one in wanted if not isinstance(one, Release)]


@router.post("", responses={202: {"model": Repaired, "description": "Not made yet; the turn says when."}})
async def make_repairs(
    session_id: SessionId,
    body: RepairOrder,
    sessions: TheSessions,
    turns: TheTurns,
    caller: TheCaller,
    response: Response,
    wait: Wait = None,
) -> Repaired:
    """Make repairs as a turn of the session, signed with who makes them and why; undone by rolling back.

    Nothing is changed when the session has gone on since `epoch`, or when something would be broken.
    """
    signed = body.model_dump(mode="json") | {"by": caller.name}
    answer: JsonObject = {"session_id": session_id, "by": caller.name, "why": body.why}
    if any(isinstance(one, Release) for one in body.repairs):
        if len(body.repairs) > 1:
            raise Refused(_ALONE)
        record = await sessions.store.release_lane(caller.tenant_id, session_id, Epoch(body.epoch), signed)
        await turns.wakeup.offer(session_id)
        told = {"turn_id": None, "status": TurnStatus.DONE, "done": [RELEASED], "reply": None}
        return Repaired.model_validate(answer | told | {"epoch": record.epoch})
    place = await _look(sessions, caller, session_id)
    refused = repairs.make_repairs(place, _changes(body.repairs)).refused
    if place.epoch != body.epoch or refused:
        raise Refused(" ".join(refused) if place.epoch == body.epoch else GONE_ON)
    receipt = await turns.submit(
        Submission(
            session_id=session_id,
            input=TurnInput(action={"name": REPAIR, "payload": signed}, form="action", kind=TurnKind.SYSTEM),
            tenant_id=caller.tenant_id,
            idempotency_key=f"repair:{hash_json(signed)}",
            if_busy=IfBusy.ENQUEUE,
        )
    )
    turn = await turns.wait(caller.tenant_id, session_id, receipt.turn_id, wait or 0.0)
    if turn.status not in FINISHED:
        response.status_code = HTTPStatus.ACCEPTED
    return Repaired.model_validate(answer | _read(turn))


def _read(turn: TurnRecord) -> JsonObject:
    """What a repairing turn came to. Raises Refused for one that has changed nothing."""
    result = turn.result or {}
    made = result.get("repair", {})
    if turn.status in FINISHED and made.get("decision") != "applied":
        raise Refused(" ".join(made.get("refused") or [f"The repair was {turn.status}: {turn.error}."]))
    return {
        "turn_id": turn.turn_id,
        "status": turn.status,
        "epoch": turn.epoch,
        "done": made.get("done", []),
        "reply": result.get("reply"),
    }
