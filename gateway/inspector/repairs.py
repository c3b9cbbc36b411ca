"""The operators' repair console: diagnose a session, preview repairs, and apply them.

A repair is a turn in the session lane. Only releasing a lane, and retrying or dropping a turn, take effect
immediately.
"""

import time
from collections.abc import Sequence
from functools import cache
from http import HTTPStatus

from fastapi import APIRouter, Response
from pydantic import Field, JsonValue

from gateway.dependencies import SessionServices, TheApprovals, TheCaller, TheSessions, TheTurns, TurnServices
from gateway.routes.approvals import Approval
from gateway.routes.sessions import Effect
from gateway.schemas import JsonMap, ResponseModel, Wait
from orchestrator.adapters.domains.folder import load_domain
from orchestrator.adapters.threads import run_in_thread
from orchestrator.agent import repairs
from orchestrator.agent.repairs import Place, find_faults, load_state, suggest
from orchestrator.dialogue.storage.serialization import diff
from orchestrator.domain.model import Domain
from orchestrator.errors import Refused
from orchestrator.turns.access import Caller
from orchestrator.turns.approval import ApprovalStatus
from orchestrator.turns.event import Event
from orchestrator.turns.repair import (
    GONE_ON,
    REPAIR,
    REPAIRED,
    Change,
    Release,
    Repair,
    RepairOrder,
    Retry,
    Urgent,
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
    require_droppable,
    require_retriable,
)
from orchestrator.types import Epoch, JsonObject, SessionId, TurnId, hash_json

router = APIRouter(prefix="/v1/sessions/{session_id}/repairs", tags=["operate"])


class Fit(ResponseModel):
    repair: dict[str, JsonValue]
    why: str


class UnfinishedTurn(ResponseModel):
    """A queued, running or quarantined turn."""

    turn_id: str
    seq: int
    status: TurnStatus
    attempts: int
    error: str | None


class Trouble(ResponseModel):
    """A session's problems, unfinished work and applicable repairs."""

    session_id: str
    epoch: int
    person: str | None = Field(description="The operator who answers instead of the assistant.")
    wrong: list[str] = Field(description="Violations of the state's invariants.")
    flows: list[JsonMap] = Field(description="The stored stack, top last.")
    effects: list[Effect] = Field(description="The session's side effects, oldest first.")
    approvals: list[Approval] = Field(description="Pending approvals.")
    turns: list[UnfinishedTurn]
    fits: list[Fit] = Field(description="Suggested repairs, to complete and preview.")


class Preview(ResponseModel):
    """The expected result of repairs. `epoch`: the session's epoch, which the repair order must name."""

    session_id: str
    epoch: int
    done: list[str] = Field(description="Descriptions of the changes.")
    told: str | None = Field(description="Message to the user, if any.")
    refused: list[str] = Field(description="Why the repairs would be rejected.")
    wrong: list[str] = Field(description="Problems that would remain.")
    diff: JsonMap = Field(description="Changes to the working state.")


class Repaired(ResponseModel):
    """The result of repairs. `turn_id` is null for repairs that are applied immediately."""

    session_id: str
    turn_id: str | None
    status: TurnStatus
    epoch: int | None
    done: list[str]
    reply: str | None
    by: str
    why: str


_ALONE = "`retry`, `release` and `give_up` can't be combined with other repairs."


@cache
def _domain(place: str) -> Domain:
    return load_domain(place).domain


async def _look(sessions: SessionServices, caller: Caller, session_id: SessionId) -> Place:
    """Read all data that a repair depends on. Raises NotFound."""
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
    """Return a session's problems, unfinished work and applicable repairs. For operators only."""
    place = await _look(sessions, caller, session_id)
    waiting = await approvals.list(caller.tenant_id, session_id=session_id, status=ApprovalStatus.PENDING)
    unfinished = await _unfinished(turns, caller, session_id)
    fits = suggest(place)
    for turn in unfinished:
        if turn.status is TurnStatus.RUNNING:
            fits.append({"repair": {"kind": "release"}, "why": f"A worker is running {turn.turn_id}."})
        if turn.status is TurnStatus.QUARANTINED:
            why = f"{turn.turn_id} is quarantined."
            fits += [
                {"repair": {"kind": kind, "turn": turn.turn_id}, "why": why} for kind in ("retry", "give_up")
            ]
    return Trouble.model_validate(
        {
            "session_id": session_id,
            "epoch": place.epoch,
            "person": place.before.get("person"),
            "wrong": find_faults(load_state(place)),
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
    """Return what repairs would change and tell the user, and any reasons for rejecting them."""
    place = await _look(sessions, caller, session_id)
    about: JsonObject = {"session_id": session_id, "epoch": place.epoch}
    if (urgent := _find_urgent(body)) is not None:
        refused = await _find_obstacle(turns, caller, session_id, urgent)
        refused += [_ALONE] if len(body.repairs) > 1 else []
        return Preview(**about, done=[urgent.done], told=None, refused=refused, wrong=[], diff={})
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
    return [one for one in wanted if not isinstance(one, Urgent)]


def _find_urgent(body: WantedRepairs) -> Urgent | None:
    return next((one for one in body.repairs if isinstance(one, Urgent)), None)


async def _find_obstacle(
    turns: TurnServices, caller: Caller, session_id: SessionId, urgent: Urgent
) -> list[str]:
    """Return why an immediate repair is impossible, as a list of one reason, or an empty list if it is possible."""
    unfinished = await _unfinished(turns, caller, session_id)
    if isinstance(urgent, Release):
        running = any(turn.status is TurnStatus.RUNNING for turn in unfinished)
        return [] if running else ["No turn is running."]
    turn = next((turn for turn in unfinished if turn.turn_id == urgent.turn), None)
    if turn is None:
        return [f"Turn {urgent.turn} is not queued or quarantined in this session."]
    try:
        (require_retriable if isinstance(urgent, Retry) else require_droppable)(turn)
    except Refused as error:
        return [str(error)]
    return []


@router.post(
    "",
    responses={
        202: {"model": Repaired, "description": "Accepted, but not applied yet; read the turn's status."}
    },
)
async def make_repairs(
    session_id: SessionId,
    body: RepairOrder,
    sessions: TheSessions,
    turns: TheTurns,
    caller: TheCaller,
    response: Response,
    wait: Wait = None,
) -> Repaired:
    """Apply repairs as a turn of the session, recorded with the operator and the reason. A rollback undoes the repairs.

    Repairs are rejected if the session has changed since `epoch`, or if they would make its state invalid. A
    repeated request returns the first result.
    """
    signed = body.model_dump(mode="json") | {"by": caller.name}
    answer: JsonObject = {"session_id": session_id, "by": caller.name, "why": body.why}
    if (urgent := _find_urgent(body)) is not None:
        if len(body.repairs) > 1:
            raise Refused(_ALONE)
        if body.idempotency_key is None or not await _find_earlier(sessions, caller, session_id, signed):
            await _make_at_once(sessions, turns, caller, session_id, urgent, signed)
        await turns.wakeup.offer(session_id, tenant_id=caller.tenant_id)
        told = {"turn_id": None, "status": TurnStatus.DONE, "done": [urgent.done], "reply": None}
        return Repaired.model_validate(answer | told | {"epoch": body.epoch})
    place = await _look(sessions, caller, session_id)
    refused = repairs.make_repairs(place, _changes(body.repairs)).refused
    earlier = None
    if place.epoch != body.epoch:
        earlier = await _find_earlier(sessions, caller, session_id, signed)
    if earlier is not None and earlier.turn_id is not None:
        made = await turns.inbox.turn(caller.tenant_id, earlier.turn_id)
        return Repaired.model_validate(answer | _read(made))
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


async def _make_at_once(
    sessions: SessionServices,
    turns: TurnServices,
    caller: Caller,
    session_id: SessionId,
    urgent: Urgent,
    signed: JsonObject,
) -> None:
    tenant_id = caller.tenant_id
    if isinstance(urgent, Release):
        await sessions.store.release_lane(tenant_id, session_id, Epoch(signed["epoch"]), signed)
        return
    if obstacle := await _find_obstacle(turns, caller, session_id, urgent):
        raise Refused(" ".join(obstacle))
    repair = turns.inbox.retry if isinstance(urgent, Retry) else turns.inbox.drop
    await repair(tenant_id, TurnId(urgent.turn), signed)


async def _find_earlier(
    sessions: SessionServices, caller: Caller, session_id: SessionId, signed: JsonObject
) -> Event | None:
    """Return the event of an earlier, identical repair order, or None."""
    async for event in sessions.events.read(caller.tenant_id, session_id):
        if event.type == REPAIRED and signed.items() <= event.payload.items():
            return event
    return None


def _read(turn: TurnRecord) -> JsonObject:
    """Return the result of a repair turn. Raises Refused if the repair was not applied."""
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
