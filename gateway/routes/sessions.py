from dataclasses import replace
from http import HTTPStatus
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import BeforeValidator, ConfigDict, Field, JsonValue, StringConstraints

from gateway.auth.disclosure import history_for
from gateway.dependencies import SessionServices, TheCaller, TheSessions, TheTenant, TheTurns, TurnServices
from gateway.journeys import Journey, Stretch, compare
from gateway.routes.webhooks import WebAddress
from gateway.schemas import (
    AtEpoch,
    Before,
    JsonMap,
    Limit,
    ResponseModel,
    Timestamp,
    documented,
    optional,
    response_of,
)
from orchestrator.errors import Forbidden, NotFound
from orchestrator.turns.effect import LedgerEntry
from orchestrator.turns.plan import PlanRecord, plan_in
from orchestrator.turns.submission import Identifier, LocaleTag, RequestBody, Timezone
from orchestrator.turns.turn import IfBusy, SessionRecord, TurnRecord
from orchestrator.types import Epoch, JsonObject, SessionId, TenantId, UserId

router = APIRouter(prefix="/v1/sessions", tags=["sessions"])


class NewSession(RequestBody):
    model_config = ConfigDict(json_schema_extra={"examples": [{"domain": "travel", "user_id": "ada"}]})

    domain: Annotated[str, StringConstraints(min_length=1, max_length=128)] | None = None
    session_id: Identifier | None = None
    user_id: Identifier | None = None
    tenant_id: Identifier | None = None
    if_busy: IfBusy | None = None
    """The rule for turns that arrive while another turn is running. Default: the domain's rule."""
    webhook: WebAddress | None = None
    timezone: Timezone | None = None
    """The user's IANA time zone. Default: the time zone of the user's last session, or of the domain."""
    locale: LocaleTag | None = None
    """The user's locale, for example ``de-DE``. Default: the locale of the user's last session, or of the domain."""


class Rollback(RequestBody):
    model_config = ConfigDict(json_schema_extra={"examples": [{"epoch": 3}]})

    epoch: Annotated[int, Field(ge=0, le=2**53)]


class Branch(RequestBody):
    model_config = ConfigDict(json_schema_extra={"examples": [{"epoch": 3}]})

    epoch: Annotated[int, Field(ge=0, le=2**53)] | None = None
    """The epoch to fork at. Default: the current epoch."""
    session_id: Identifier | None = None


def _name_status(closed: bool) -> str:
    return "closed" if closed else "open"


def _data_of(result: Any) -> Any:
    return None if result is None else result.get("data")


class Utterance(ResponseModel):
    turn_id: str
    seq: int
    role: Literal["user", "agent", "system", "operator"]
    form: str
    content: str
    at: Timestamp


class Session(response_of(SessionRecord, without=("closed",))):
    status: Annotated[Literal["open", "closed"], BeforeValidator(_name_status)] = Field(
        validation_alias="closed"
    )
    timezone: str | None = optional("The user's time zone. Default: the domain's time zone.")
    locale: str | None = optional("The user's locale. Default: the domain's locale.")
    state: JsonMap | None = optional("The working state; only when reading one session.")
    title: str | None = optional("The beginning of the first message; only in lists.")
    parent: str | None = optional("ID of the session that this one was forked from.")
    parent_epoch: int | None = optional("Version of the parent at the fork.")
    root: str | None = optional("For a fork, the ID of the session at the root of its lineage.")
    plan: JsonMap | None = optional("The plan at the version `at`; only with `at`.")
    history: list[Utterance] | None = optional("The messages up to the version `at`; only with `at`.")


class State(ResponseModel):
    epoch: int
    state: JsonMap | None


class Effect(response_of(LedgerEntry, without=("session_id", "step_key"))):
    """A side effect in the ledger. `at`: the time of its last change."""

    result: Annotated[JsonValue, BeforeValidator(_data_of)]
    of_session: str | None = optional(
        "For a fork, the ID of the session from which it inherited the side effect."
    )


class ComparedTurns(ResponseModel):
    """Turns at the same position after two sessions diverged. A side is null if its session has fewer turns."""

    left: JsonMap | None
    right: JsonMap | None
    differs: list[str] = Field(examples=[["said", "tools"]])


class Comparison(ResponseModel):
    left: str
    right: str
    common: JsonMap | None = Field(
        description="The last version that both sessions share, with its session ID, or null if there is none.",
        examples=[{"session_id": "session_1", "epoch": 3}],
    )
    turns: list[ComparedTurns]
    effects: dict[Literal["left", "right"], list[JsonMap]] = Field(
        description="Side effects in only one of the two ledgers, by side."
    )


class Plan(response_of(PlanRecord, without=("body",))):
    turn_id: str
    at: Timestamp
    steps: list[JsonMap]
    revisions: list[JsonMap]


MOST_COMPARED = 1000
"""Maximum number of turns, and of side effects, to compare per session."""


@router.post("", status_code=HTTPStatus.CREATED, response_model=Session)
async def create_session(body: NewSession, sessions: TheSessions, caller: TheCaller) -> SessionRecord:
    """Create a session, or return the session that already has the ID `session_id`.

    Returns 409 if this ID belongs to another domain or tenant.
    """
    tenant = caller.tenant_id
    if body.tenant_id not in {None, tenant}:
        raise Forbidden(f"Your credentials are limited to the tenant {tenant!r}: omit `tenant_id`.")
    if body.webhook is not None and caller.only_user is not None:
        raise Forbidden("Only backends and operators can set a session's webhook.")
    domain = sessions.domains.resolve(body.domain)
    record = await sessions.store.create(
        tenant,
        domain,
        session_id=SessionId(body.session_id) if body.session_id else None,
        user_id=caller.acting_user(UserId(body.user_id) if body.user_id else None),
        if_busy=body.if_busy or sessions.domains.if_busy(domain),
        webhook=body.webhook,
        timezone=body.timezone,
        locale=body.locale,
    )
    caller.require_owner(record.session_id, record.user_id)  # the session may already have existed
    return record


@router.get("", response_model=list[Session])
async def list_sessions(sessions: TheSessions, caller: TheCaller, limit: Limit = 100) -> list[SessionRecord]:
    """List sessions without their state, most recently active first. Users see only their own sessions."""
    return await sessions.store.list(caller.tenant_id, user_id=caller.only_user, limit=limit)


@router.get("/{session_id}", response_model=Session)
async def show_session(
    session_id: SessionId, sessions: TheSessions, caller: TheCaller, at: AtEpoch = None
) -> SessionRecord | Session:
    """Return a session with its working state: flow stack, known values and open question.

    `at`: an earlier epoch; the response then includes the plan and history. Default: the current epoch.
    """
    tenant = caller.tenant_id
    record = await sessions.store.get(tenant, session_id)
    if at is None:
        return record
    epoch = Epoch(at)
    state = await sessions.store.state_at(tenant, session_id, epoch)
    said = await sessions.store.history(tenant, session_id, until=epoch)
    past = Session.model_validate(replace(record, epoch=epoch, state=state))
    past.plan, past.history = (
        plan_in(state),
        [Utterance.model_validate(line) for line in history_for(caller, said)],
    )
    return past


@router.delete("/{session_id}", response_model=Session)
async def close_session(session_id: SessionId, sessions: TheSessions, tenant: TheTenant) -> SessionRecord:
    """Close a session, which then accepts no further turns but stays readable."""
    return await sessions.store.close(tenant, session_id)


@router.get("/{session_id}/history", responses=documented(list[Utterance]))
async def read_history(
    session_id: SessionId,
    sessions: TheSessions,
    caller: TheCaller,
    before: Before = None,
    limit: Limit = 200,
) -> list[JsonObject]:
    """List the latest utterances, oldest first. `before`: only utterances of turns with a lower `seq`.

    Operators' notes and reasons for repairs are hidden from users.
    """
    said = await sessions.store.history(caller.tenant_id, session_id, before=before, limit=limit)
    return history_for(caller, said)


@router.get("/{session_id}/effects", response_model=list[Effect])
async def read_effects(
    session_id: SessionId, sessions: TheSessions, tenant: TheTenant, limit: Limit = 200
) -> list[LedgerEntry]:
    """List the side effects of the session's tool calls, least recently changed first."""
    return await sessions.effects.list(tenant, session_id, limit=limit)


@router.get("/{session_id}/plan", responses=documented(Plan))
async def read_plan(session_id: SessionId, sessions: TheSessions, tenant: TheTenant) -> JsonObject:
    """Return the session's latest plan: its steps, progress and revisions."""
    return await sessions.store.plan(tenant, session_id)


@router.get("/{session_id}/state")
async def read_state(
    session_id: SessionId,
    sessions: TheSessions,
    tenant: TheTenant,
    epoch: AtEpoch = None,
) -> State:
    """Return the current working state, or the working state at `epoch`."""
    if epoch is None:
        record = await sessions.store.get(tenant, session_id)
        return State(epoch=record.epoch, state=record.state)
    return State(epoch=epoch, state=await sessions.store.state_at(tenant, session_id, Epoch(epoch)))


@router.post("/{session_id}/rollback", response_model=Session)
async def roll_back(
    session_id: SessionId, body: Rollback, sessions: TheSessions, tenant: TheTenant
) -> SessionRecord:
    """Restore the state of an earlier epoch as a new epoch. The history is kept."""
    return await sessions.store.rollback(tenant, session_id, Epoch(body.epoch))


@router.post("/{session_id}/branch", status_code=HTTPStatus.CREATED, response_model=Session)
async def branch_off(
    session_id: SessionId, body: Branch, sessions: TheSessions, tenant: TheTenant
) -> SessionRecord:
    """Fork the session at an epoch, for the same user. If `session_id` names an identical fork, return this fork."""
    return await sessions.store.branch(
        tenant,
        session_id,
        epoch=None if body.epoch is None else Epoch(body.epoch),
        branch_id=SessionId(body.session_id) if body.session_id else None,
    )


@router.get("/{session_id}/compare", responses=documented(Comparison))
async def compare_sessions(
    session_id: SessionId,
    sessions: TheSessions,
    turns: TheTurns,
    caller: TheCaller,
    other: Annotated[Identifier, Query(alias="with", description="ID of the session to compare with.")],
) -> JsonObject:
    """Compare the messages, flows, calls, answers and side effects of two sessions after they diverge."""
    tenant = caller.tenant_id
    caller.require_owner(SessionId(other), await sessions.store.owner(tenant, SessionId(other)))
    left, right = [
        await _read_journey(sessions, turns, tenant, name) for name in (session_id, SessionId(other))
    ]
    return compare(left, right)


async def _read_journey(
    sessions: SessionServices, turns: TurnServices, tenant: TenantId, session_id: SessionId
) -> Journey:
    """Return a session's lineage with its turns and side effects, except those of deleted sessions."""
    record = await sessions.store.get(tenant, session_id)
    stretches, found = [Stretch(session_id)], dict[SessionId, list[TurnRecord]]()
    while True:
        found[record.session_id] = await turns.inbox.turns(
            tenant, session_id=record.session_id, limit=MOST_COMPARED
        )
        if record.parent is None:
            break
        stretches.insert(0, Stretch(record.parent, record.parent_epoch))
        try:
            record = await sessions.store.get(tenant, record.parent)
        except NotFound:  # the session's turns were deleted too
            break
    return Journey(stretches, found, await sessions.effects.list(tenant, session_id, limit=MOST_COMPARED))
