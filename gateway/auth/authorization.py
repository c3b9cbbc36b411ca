"""Authorize requests by rules per route, and by the owners of the resources in paths (RT-22).

Users can call the routes listed for them, and routes whose path names a resource of their own.
"""

from dataclasses import dataclass
from typing import Final

from starlette.requests import HTTPConnection

from orchestrator.adapters.postgres.runs.runs import PostgresRuns
from orchestrator.errors import Forbidden
from orchestrator.ports.sessions import Sessions
from orchestrator.ports.turns import Approvals, Inbox
from orchestrator.turns.access import Caller
from orchestrator.types import SessionId, TurnId

OPERATORS_ONLY: Final = frozenset(
    {
        ("GET", "/v1/turns/search"),
        ("GET", "/v1/turns/days"),
        ("GET", "/v1/turns/users"),
        ("GET", "/v1/turns/{turn_id}/journal"),
        ("GET", "/v1/turns/{turn_id}/case"),
        ("POST", "/v1/turns/{turn_id}/retry"),
        ("GET", "/v1/sessions/{session_id}/repairs"),
        ("POST", "/v1/sessions/{session_id}/repairs"),
        ("POST", "/v1/sessions/{session_id}/repairs/preview"),
        ("POST", "/v1/sessions/{session_id}/events"),
        ("PUT", "/v1/sessions/{session_id}/events/{event_id}"),
        ("POST", "/v1/runs"),
        ("POST", "/v1/runs/{run_id}/cancel"),
        ("POST", "/v1/runs/{run_id}/redo"),
        ("GET", "/v1/webhooks"),
        ("POST", "/v1/webhooks"),
        ("POST", "/v1/webhooks/secret"),
        ("GET", "/v1/webhooks/failing"),
        ("DELETE", "/v1/webhooks/{webhook_id}"),
        ("POST", "/v1/webhooks/{webhook_id}/retry"),
        ("GET", "/v1/evaluations"),
        ("GET", "/v1/evaluations/{domain}/{run}"),
        ("GET", "/v1/replays"),
        ("GET", "/v1/replays/{domain}/{replay}"),
        ("GET", "/metrics"),
    }
)

FOR_EVERYBODY: Final = frozenset(
    {
        ("POST", "/v1/sessions"),  # creates a session for the calling user
        ("GET", "/v1/sessions"),  # lists only the calling user's sessions
        ("GET", "/v1/whoami"),
        ("GET", "/v1/inspector"),
        ("GET", "/v1/domains/{domain}/flows"),
        ("POST", "/v1/tickets"),
        ("POST", "/v1/agui"),  # the route checks the owner of the thread's session
    }
)

# For users, the query must name a session that belongs to the user.
LISTS: Final = frozenset(
    {("GET", "/v1/turns"), ("GET", "/v1/approvals"), ("GET", "/v1/runs"), ("GET", "/v1/feedback")}
)

# Users can read their own documents and shared documents. Only backends can write shared documents.
DOCUMENTS: Final = frozenset(
    {("GET", "/v1/documents"), ("GET", "/v1/documents/search"), ("GET", "/v1/documents/{document_id}")}
)


@dataclass(frozen=True, slots=True)
class Owners:
    sessions: Sessions
    inbox: Inbox
    approvals: Approvals
    runs: PostgresRuns


async def authorize(connection: HTTPConnection, owners: Owners, caller: Caller) -> None:
    """Check that the caller is allowed to make this request.

    Raises Forbidden, or NotFound to hide that a resource exists.
    """
    route = route_of(connection)
    if route in OPERATORS_ONLY:
        caller.require_operator()
    if caller.only_user is None or route in FOR_EVERYBODY:
        return
    if route in DOCUMENTS:
        if {*connection.query_params.getlist("user_id")} - {caller.only_user}:
            raise Forbidden("You can read only your own documents and shared documents.")
        return
    if route in LISTS:
        named = connection.query_params.getlist("session_id")
        if len(named) != 1:
            raise Forbidden("Specify one of your sessions: add `session_id` to the query.")
        await _require_session(owners, caller, SessionId(named[0]))
        return
    await _require_named(connection, owners, caller)


def route_of(connection: HTTPConnection) -> tuple[str, str]:
    """Return the request's method and path template. A WebSocket counts as GET."""
    route = connection.scope.get("route")
    return connection.scope.get("method", "GET"), getattr(route, "path", connection.url.path)


async def _require_named(connection: HTTPConnection, owners: Owners, caller: Caller) -> None:
    """Raise an error unless the caller owns the resource that the path names."""
    match connection.path_params:
        case {"session_id": str(session_id)}:
            await _require_session(owners, caller, SessionId(session_id))
        case {"turn_id": str(turn_id)}:
            turn = await owners.inbox.turn(caller.tenant_id, TurnId(turn_id))
            await _require_session(owners, caller, turn.session_id)
        case {"approval_id": str(approval_id)}:
            approval = await owners.approvals.get(caller.tenant_id, approval_id)
            await _require_session(owners, caller, approval.session_id)
        case {"run_id": str(run_id)}:
            run = await owners.runs.get(caller.tenant_id, run_id)
            if run.session_id is None:
                raise Forbidden("Only operators can access a run without a session.")
            await _require_session(owners, caller, SessionId(run.session_id))
        case {"user_id": str(user_id)} if user_id == caller.only_user:
            return
        case _:
            raise Forbidden("Your key or token can access only your own sessions.")


async def _require_session(owners: Owners, caller: Caller, session_id: SessionId) -> None:
    caller.require_owner(session_id, await owners.sessions.owner(caller.tenant_id, session_id))
