"""Each call of the gateway as a value, and the errors its answers stand for. No network here."""

from __future__ import annotations

from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from orchestrator import errors
from orchestrator.types import JsonObject, new_id

DEFAULT_TIMEOUT_S = 30.0
PAUSES_S = (0.1, 0.3)
"""After each attempt but the last. A call that may not be repeated has one attempt."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request. `wait_s` is added to the client's time-out: the gateway answers that much later.

    `repeatable`: it may be sent again when its answer was lost; the first one counts.
    """

    method: str
    path: str
    body: JsonObject | None = None
    query: dict[str, str] = field(default_factory=dict[str, str])
    wait_s: float = 0.0
    keyed: bool = False

    @property
    def repeatable(self) -> bool:
        return self.keyed or self.method == "GET"


def _given(**members: object) -> JsonObject:
    return {name: value for name, value in members.items() if value is not None}


def _query(**members: object) -> dict[str, str]:
    return {name: str(value) for name, value in members.items() if value is not None}


def _session(session_id: str, rest: str = "") -> str:
    return f"/v1/sessions/{quote(session_id, safe='')}{rest}"


def _turn(turn_id: str, rest: str = "") -> str:
    return f"/v1/turns/{quote(turn_id, safe='')}{rest}"


def create_session(
    domain: str | None,
    session_id: str | None,
    user_id: str | None,
    if_busy: str | None,
    webhook: str | None = None,
) -> Call:
    body = _given(domain=domain, session_id=session_id, user_id=user_id, if_busy=if_busy, webhook=webhook)
    return Call("POST", "/v1/sessions", body)


def submit(
    session_id: str,
    text: str | None,
    *,
    action: JsonObject | None,
    idempotency_key: str | None,
    sequence: int | None,
    if_busy: str | None,
    wait_s: float | None,
) -> Call:
    """With a key of its own when none is given, so that it can be repeated."""
    key = idempotency_key or new_id("client")
    body = _given(text=text, action=action, idempotency_key=key, sequence=sequence, if_busy=if_busy)
    path = _session(session_id, "/turns")
    return Call("POST", path, body, _query(wait=wait_s), wait_s or 0.0, keyed=True)


def sessions(limit: int) -> Call:
    return Call("GET", "/v1/sessions", query=_query(limit=limit))


def session(session_id: str) -> Call:
    return Call("GET", _session(session_id))


def close_session(session_id: str) -> Call:
    return Call("DELETE", _session(session_id))


def history(session_id: str, before: int | None, limit: int) -> Call:
    return Call("GET", _session(session_id, "/history"), query=_query(before=before, limit=limit))


def session_turns(session_id: str, before: int | None, limit: int) -> Call:
    return Call("GET", _session(session_id, "/turns"), query=_query(before=before, limit=limit))


def follow_events(session_id: str, after: int) -> Call:
    return Call("GET", _session(session_id, "/events"), query=_query(after=after))


def frames(session_id: str) -> Call:
    return Call("GET", _session(session_id, "/frames"))


def frame_page(session_id: str, frame_id: str, number: int) -> Call:
    return Call("GET", _session(session_id, f"/frames/{quote(frame_id, safe='')}/page/{number}"))


def scratchpad(session_id: str) -> Call:
    return Call("GET", _session(session_id, "/scratchpad"))


def turn_journal(turn_id: str) -> Call:
    return Call("GET", _turn(turn_id, "/journal"))


def journal(session_id: str, turn_id: str | None, limit: int) -> Call:
    return Call("GET", _session(session_id, "/journal"), query=_query(turn_id=turn_id, limit=limit))


def give_feedback(
    turn_id: str, rating: str | None, comment: str | None, correction: JsonObject | None, author: str | None
) -> Call:
    body = _given(rating=rating, comment=comment, correction=correction, author=author)
    return Call("POST", _turn(turn_id, "/feedback"), body)


def plan(session_id: str) -> Call:
    return Call("GET", _session(session_id, "/plan"))


def state(session_id: str, epoch: int | None) -> Call:
    return Call("GET", _session(session_id, "/state"), query=_query(epoch=epoch))


def effects(session_id: str, limit: int) -> Call:
    return Call("GET", _session(session_id, "/effects"), query=_query(limit=limit))


def approvals(status: str | None, session_id: str | None, limit: int) -> Call:
    query = _query(status=status, session_id=session_id, limit=limit)
    return Call("GET", "/v1/approvals", query=query)


def decide_approval(approval_id: str, decision: str, reason: str | None, decided_by: str | None) -> Call:
    body = _given(decision=decision, reason=reason, decided_by=decided_by)
    return Call("POST", f"/v1/approvals/{quote(approval_id, safe='')}", body, keyed=True)


def rollback(session_id: str, epoch: int) -> Call:
    return Call("POST", _session(session_id, "/rollback"), {"epoch": epoch})


def turn(turn_id: str, wait_s: float | None) -> Call:
    return Call("GET", _turn(turn_id), query=_query(wait=wait_s), wait_s=wait_s or 0.0)


def turns(status: str | None, session_id: str | None, limit: int) -> Call:
    query = _query(status=status, session_id=session_id, limit=limit)
    return Call("GET", "/v1/turns", query=query)


def cancel_turn(turn_id: str) -> Call:
    return Call("POST", _turn(turn_id, "/cancel"))


def retry_turn(turn_id: str) -> Call:
    return Call("POST", _turn(turn_id, "/retry"))


def drop_turn(turn_id: str) -> Call:
    return Call("POST", _turn(turn_id, "/drop"))


def _run(run_id: str, rest: str = "") -> str:
    return f"/v1/runs/{quote(run_id, safe='')}{rest}"


def start_run(
    flow: str, session_id: str | None, inputs: list[Any], options: JsonObject, parameters: JsonObject
) -> Call:
    body = _given(flow=flow, session_id=session_id, inputs=inputs, options=options, parameters=parameters)
    return Call("POST", "/v1/runs", body)


def runs(session_id: str | None, flow: str | None, status: str | None, limit: int) -> Call:
    query = _query(session_id=session_id, flow=flow, status=status, limit=limit)
    return Call("GET", "/v1/runs", query=query)


def housekeeping_debt(limit: int) -> Call:
    return Call("GET", "/v1/runs/debt", query=_query(limit=limit))


def run(run_id: str) -> Call:
    return Call("GET", _run(run_id))


def run_items(run_id: str, after: int, limit: int) -> Call:
    return Call("GET", _run(run_id, "/items"), query=_query(after=after, limit=limit))


def cancel_run(run_id: str) -> Call:
    return Call("POST", _run(run_id, "/cancel"))


def redo_run(run_id: str) -> Call:
    return Call("POST", _run(run_id, "/redo"))


def whoami() -> Call:
    return Call("GET", "/v1/whoami")


def webhooks(limit: int) -> Call:
    return Call("GET", "/v1/webhooks", query=_query(limit=limit))


def create_webhook(url: str, session_id: str | None, events: list[str] | None) -> Call:
    return Call("POST", "/v1/webhooks", _given(url=url, session_id=session_id, events=events))


def close_webhook(webhook_id: str) -> Call:
    return Call("DELETE", f"/v1/webhooks/{quote(webhook_id, safe='')}")


def failing_webhooks(limit: int) -> Call:
    return Call("GET", "/v1/webhooks/failing", query=_query(limit=limit))


def retry_webhook(webhook_id: str, session_id: str | None) -> Call:
    place = f"/v1/webhooks/{quote(webhook_id, safe='')}/retry"
    return Call("POST", place, query=_query(session_id=session_id))


def rotate_webhook_secret() -> Call:
    return Call("POST", "/v1/webhooks/secret")


def add_document(text: str, title: str, domain: str | None, user_id: str | None, labels: list[str]) -> Call:
    body = _given(text=text, title=title, domain=domain, user_id=user_id, labels=labels)
    return Call("POST", "/v1/documents", body)


def documents(user_id: str | None, domain: str | None, after: str, limit: int) -> Call:
    query = _query(user_id=user_id, domain=domain, after=after, limit=limit)
    return Call("GET", "/v1/documents", query=query)


def search_documents(question: str, user_id: str | None, domain: str | None, limit: int) -> Call:
    query = _query(q=question, user_id=user_id, domain=domain, limit=limit)
    return Call("GET", "/v1/documents/search", query=query)


def delete_document(document_id: str, user_id: str | None) -> Call:
    return Call("DELETE", f"/v1/documents/{quote(document_id, safe='')}", query=_query(user_id=user_id))


def preferences(user_id: str) -> Call:
    return Call("GET", f"/v1/users/{quote(user_id, safe='')}/preferences")


def replace_preferences(user_id: str, preferences: list[JsonObject]) -> Call:
    body: JsonObject = {"preferences": preferences}
    return Call("PUT", f"/v1/users/{quote(user_id, safe='')}/preferences", body)


def ready() -> Call:
    return Call("GET", "/health/ready")


def headers(api_key: str | None) -> dict[str, str]:
    """What every request carries."""
    return {"Authorization": f"Bearer {api_key}"} if api_key else {}


def request(call: Call, timeout_s: float) -> JsonObject:
    """The call as arguments of either client's ``request``."""
    return {
        "method": call.method,
        "url": call.path,
        "json": call.body,
        "params": call.query,
        "timeout": httpx.Timeout(timeout_s, read=timeout_s + call.wait_s),
    }


def answer(response: httpx.Response) -> Any:
    """The JSON of a good answer; a problem document is raised as the error it stands for."""
    if response.status_code == HTTPStatus.NO_CONTENT:
        return {}
    if response.is_success:
        return response.json()
    if not response.headers.get("Content-Type", "").startswith("application/problem+json"):
        raise errors.Unavailable(f"The gateway answered {response.status_code} without saying why.")
    raise _error_of(response.json(), response)


_PLAIN: dict[str, type[errors.ParleyError]] = {
    kind.code: kind
    for kind in (
        errors.SessionBusy,
        errors.SessionClosed,
        errors.Forbidden,
        errors.Refused,
        errors.Unavailable,
    )
}
"""Errors that carry nothing but their message."""


def _error_of(body: JsonObject, response: httpx.Response) -> errors.ParleyError:
    detail = str(body.get("detail", "The gateway gave no reason."))
    retry_after_s = int(response.headers.get("Retry-After", "1"))
    code = body.get("code")
    match code:
        case errors.InputTooLarge.code:
            return errors.InputTooLarge(detail, field=str(body.get("field", "body")))
        case errors.InvalidInput.code:
            return errors.InvalidInput(detail, field=str(body.get("field", "body")))
        case errors.NotFound.code:
            return _with_message(errors.NotFound("thing", ""), detail)
        case errors.InboxFull.code:
            return errors.InboxFull(detail, retry_after_s=retry_after_s)
        case errors.TooManyRequests.code:
            return errors.TooManyRequests(detail, retry_after_s=retry_after_s)
        case errors.Unauthenticated.code:
            return errors.Unauthenticated(f"{detail} For the command line: set PARLEY_API_KEY.")
        case _:
            return _PLAIN.get(str(code), errors.ParleyError)(detail)


def _with_message(error: errors.ParleyError, message: str) -> errors.ParleyError:
    error.args = (message,)
    return error


def unreachable(base_url: str, error: httpx.HTTPError) -> errors.Unavailable:
    if isinstance(error, httpx.TimeoutException):
        return errors.Unavailable(f"The gateway at {base_url} did not answer in time; try again.")
    return errors.Unavailable(f"No gateway answers at {base_url}. Start one with `parley up`.")
