"""API methods shared by `Client` and `AsyncClient`."""

from datetime import datetime
from typing import Any

from parley_client.calls import Call, path_of
from parley_client.operating import Many, One, OperatorMethods
from parley_client.types import JsonObject, new_id


class Methods(OperatorMethods[One, Many]):
    """The API's methods. They raise the errors in `parley_client.errors`.

    For example, every method raises Unavailable if the gateway doesn't respond.
    """

    def create_session(
        self,
        domain: str | None = None,
        *,
        session_id: str | None = None,
        user_id: str | None = None,
        if_busy: str | None = None,
        webhook: str | None = None,
        timezone: str | None = None,
        locale: str | None = None,
    ) -> One:
        """Create a session, or return the existing session with the ID `session_id`.

        `if_busy`: the default rule for turns that arrive while another turn is unfinished. `webhook`: URL that
        receives the session's events; see `verify_webhook`. `timezone`: the user's IANA time zone. `locale`: the
        user's locale, such as ``de-DE``.
        """
        return self._post(
            "sessions",
            domain=domain,
            session_id=session_id,
            user_id=user_id,
            if_busy=if_busy,
            webhook=webhook,
            timezone=timezone,
            locale=locale,
        )

    def submit(
        self,
        session_id: str,
        text: str | None = None,
        *,
        action: JsonObject | None = None,
        idempotency_key: str | None = None,
        sequence: int | None = None,
        if_busy: str | None = None,
        wait_s: float | None = None,
        timezone: str | None = None,
        locale: str | None = None,
    ) -> One:
        """Submit a turn and return a receipt.

        `wait_s`: maximum seconds to wait for the turn to finish; the turn, finished or not, is then returned
        instead. `text` or `action`: the input. `idempotency_key`: makes the request safe to retry; default: a
        generated key. `sequence`: the turn's number within the session, from 1, to run turns in this order.
        `if_busy`: the rule for this turn if another turn is unfinished. `timezone` and `locale`: new values
        for the user, stored with the session.
        """
        body = {
            "text": text,
            "action": action,
            "idempotency_key": new_id("client") if idempotency_key is None else idempotency_key,
            "sequence": sequence,
            "if_busy": if_busy,
            "timezone": timezone,
            "locale": locale,
        }
        path = path_of("sessions", session_id, "turns")
        return self._send(Call("POST", path, body, {"wait": wait_s}, keyed=True))

    def turn(self, turn_id: str, wait_s: float | None = None) -> One:
        """Return a turn. `wait_s`: maximum seconds to wait for the turn to finish. Raises NotFound."""
        return self._get("turns", turn_id, wait=wait_s)

    def turns(self, status: str | None = None, *, session_id: str | None = None, limit: int = 100) -> Many:
        """List turns of one session or all sessions, newest first. `status`: for example ``queued`` or ``done``."""
        return self._get("turns", status=status, session_id=session_id, limit=limit)

    def cancel_turn(self, turn_id: str) -> One:
        """Cancel a queued turn, or ask a running turn to stop. A finished turn stays unchanged."""
        return self._post("turns", turn_id, "cancel")

    def retry_turn(self, turn_id: str) -> One:
        """Requeue a quarantined turn at the end of its session's queue.

        Raises Forbidden if the caller isn't an operator, or Refused if the turn isn't quarantined.
        """
        return self._post("turns", turn_id, "retry")

    def sessions(self, limit: int = 100) -> Many:
        """List the sessions that the caller can access, most recently active first."""
        return self._get("sessions", limit=limit)

    def session(self, session_id: str, *, at: int | None = None) -> One:
        """Return a session with its current working state. Raises NotFound.

        `at`: the epoch whose state, plan and history to return. Default: the current epoch.
        """
        return self._get("sessions", session_id, at=at)

    def flows(self, domain: str) -> Many:
        """List a domain's flows with their slots and tools."""
        return self._get("domains", domain, "flows")

    def close_session(self, session_id: str) -> One:
        """Close a session, which then accepts no further turns but stays readable."""
        return self._send(Call("DELETE", path_of("sessions", session_id)))

    def history(self, session_id: str, limit: int = 200, *, before: int | None = None) -> Many:
        """List the session's latest messages, oldest first. `before`: only messages of turns with a lower `seq`."""
        return self._get("sessions", session_id, "history", before=before, limit=limit)

    def session_turns(self, session_id: str, *, before: int | None = None, limit: int = 50) -> Many:
        """List a session's turns with times, newest first. `before`: only turns with a lower `seq`."""
        return self._get("sessions", session_id, "turns", before=before, limit=limit)

    def frames(self, session_id: str) -> Many:
        """List the session's frames, newest first. Each flow has only its latest frame."""
        return self._get("sessions", session_id, "frames")

    def frame_page(self, session_id: str, frame_id: str, number: int) -> One:
        """Return a page of a frame's table. Pages are numbered from 1."""
        return self._get("sessions", session_id, "frames", frame_id, "page", str(number))

    def scratchpad(self, session_id: str) -> Many:
        """List the session's scratchpad entries, least recently used first."""
        return self._get("sessions", session_id, "scratchpad")

    def journal(self, session_id: str, *, turn_id: str | None = None, limit: int = 200) -> Many:
        """List the model and tool calls of a session or of one turn, newest first."""
        return self._get("sessions", session_id, "journal", turn_id=turn_id, limit=limit)

    def give_feedback(
        self,
        turn_id: str,
        *,
        rating: str | None = None,
        comment: str | None = None,
        correction: JsonObject | None = None,
        author: str | None = None,
    ) -> One:
        """Submit feedback on a turn, replacing the author's earlier feedback.

        `rating`: ``up`` or ``down``. `correction`: the correct ``reply``, ``dact`` or ``slots``.
        """
        return self._post(
            "turns",
            turn_id,
            "feedback",
            rating=rating,
            comment=comment,
            correction=correction,
            author=author,
        )

    def feedback(self, *, session_id: str | None = None, limit: int = 1000) -> Many:
        """List feedback on turns of one session or all sessions, newest first."""
        return self._get("feedback", session_id=session_id, limit=limit)

    def plan(self, session_id: str) -> One:
        """Return the session's latest plan with its revisions. Raises NotFound if the session never had a plan."""
        return self._get("sessions", session_id, "plan")

    def state(self, session_id: str, epoch: int | None = None) -> One:
        """Return the working state at an epoch: ``{epoch, state}``. Default: the current epoch. Raises NotFound."""
        return self._get("sessions", session_id, "state", epoch=epoch)

    def effects(self, session_id: str, limit: int = 200) -> Many:
        """List the side effects of a session's tool calls, least recently changed first."""
        return self._get("sessions", session_id, "effects", limit=limit)

    def approvals(
        self, status: str | None = None, *, session_id: str | None = None, limit: int = 100
    ) -> Many:
        """List approvals of one session or all sessions, newest first. `status`: for example ``pending``."""
        return self._get("approvals", status=status, session_id=session_id, limit=limit)

    def decide_approval(
        self, approval_id: str, decision: str, *, reason: str | None = None, decided_by: str | None = None
    ) -> One:
        """Decide an approval: ``grant`` or ``deny``. Raises Refused if the approval can no longer be decided."""
        return self._post(
            "approvals", approval_id, keyed=True, decision=decision, reason=reason, decided_by=decided_by
        )

    def send_event(
        self,
        session_id: str,
        name: str,
        payload: JsonObject | None = None,
        *,
        not_before: datetime | None = None,
        idempotency_key: str | None = None,
    ) -> One:
        """Start the flow that handles the event `name` in a session, now or at `not_before`.

        `payload`: slot values for the flow. If an event with the same `idempotency_key` exists, return that
        event.
        """
        return self._post(
            "sessions",
            session_id,
            "events",
            keyed=True,
            name=name,
            payload=payload or {},
            not_before=None if not_before is None else not_before.isoformat(),
            idempotency_key=idempotency_key or new_id("event"),
        )

    def scheduled_events(self, session_id: str, limit: int = 100) -> Many:
        """List a session's events and reminders. Scheduled events come first, then delivered and canceled events."""
        return self._get("sessions", session_id, "events", "scheduled", limit=limit)

    def move_event(self, session_id: str, event_id: str, not_before: datetime) -> One:
        """Change an event's due time. Raises Refused if the event was delivered or canceled."""
        body: JsonObject = {"not_before": not_before.isoformat()}
        return self._send(Call("PUT", path_of("sessions", session_id, "events", event_id), body))

    def cancel_event(self, session_id: str, event_id: str) -> One:
        """Cancel an event, and its turn if the turn hasn't started.

        `event_id`: the event's ID or idempotency key.
        """
        return self._send(Call("DELETE", path_of("sessions", session_id, "events", event_id)))

    def rollback(self, session_id: str, epoch: int) -> One:
        """Restore the state of an earlier epoch as a new epoch. Raises SessionBusy while turns are unfinished."""
        return self._post("sessions", session_id, "rollback", epoch=epoch)

    def branch(self, session_id: str, *, epoch: int | None = None, branch_id: str | None = None) -> One:
        """Fork a session at an epoch. Default: the current epoch.

        `branch_id`: ID of the fork. Default: a generated ID. If the same fork exists, return it. Raises NotFound,
        or Refused if another session uses the ID.
        """
        name = new_id("session") if branch_id is None else branch_id
        return self._post("sessions", session_id, "branch", keyed=True, epoch=epoch, session_id=name)

    def compare(self, session_id: str, other: str) -> One:
        """Compare two sessions from the point where they diverge: ``{left, right, common, turns, effects}``.

        Raises NotFound.
        """
        return self._get("sessions", session_id, "compare", **{"with": other})

    def start_run(
        self,
        flow: str | None = None,
        *,
        trigger: str | None = None,
        session_id: str | None = None,
        inputs: list[Any] | None = None,
        options: JsonObject | None = None,
        parameters: JsonObject | None = None,
    ) -> One:
        """Start a background flow, or all flows of a trigger, and return ``{run_id, runs, joined}``.

        If the session already has an active run of the flow, the result contains that run's ID.
        """
        return self._post(
            "runs",
            flow=flow,
            trigger=trigger,
            session_id=session_id,
            inputs=inputs or [],
            options=options or {},
            parameters=parameters or {},
        )

    def runs(
        self,
        *,
        session_id: str | None = None,
        flow: str | None = None,
        status: str | None = None,
        limit: int = 100,
    ) -> Many:
        """List background runs, newest first."""
        return self._get("runs", session_id=session_id, flow=flow, status=status, limit=limit)

    def backlog(self, *, limit: int = 100) -> One:
        """Return deferred maintenance: ``{turn_wait_s, sessions: [{session_id, runs, oldest_s}]}``."""
        return self._get("runs", "backlog", limit=limit)

    def run(self, run_id: str) -> One:
        """Return a run, with the IDs of all runs in its `chain`."""
        return self._get("runs", run_id)

    def run_items(self, run_id: str, *, after: int = -1, limit: int = 100) -> Many:
        """List a run's items by position, starting after position `after`."""
        return self._get("runs", run_id, "items", after=after, limit=limit)

    def cancel_run(self, run_id: str) -> One:
        """Cancel an unfinished run and return it. Dependent runs don't start."""
        return self._post("runs", run_id, "cancel")

    def redo_run(self, run_id: str) -> One:
        """Rerun a run with the inputs and options of the first run in its `chain`. Return the new run's ID."""
        return self._post("runs", run_id, "redo")

    def add_document(
        self,
        text: str,
        *,
        title: str = "",
        domain: str | None = None,
        user_id: str | None = None,
        labels: tuple[str, ...] = (),
    ) -> One:
        """Store a document, unless it is already stored, and embed it in the background.

        Return ``{document_id, created, run_id}``.
        """
        return self._post(
            "documents", text=text, title=title, domain=domain, user_id=user_id, labels=list(labels)
        )

    def documents(
        self, *, user_id: str | None = None, domain: str | None = None, after: str = "", limit: int = 100
    ) -> Many:
        """List documents ordered by ID, without their text. `after`: the previous page's last ID."""
        return self._get("documents", user_id=user_id, domain=domain, after=after, limit=limit)

    def search_documents(
        self, question: str, *, user_id: str | None = None, domain: str | None = None, limit: int = 10
    ) -> Many:
        """Find the passages that answer a question, best first."""
        return self._get("documents", "search", q=question, user_id=user_id, domain=domain, limit=limit)

    def delete_document(self, document_id: str, *, user_id: str | None = None) -> Any:
        return self._send(Call("DELETE", path_of("documents", document_id), query={"user_id": user_id}))

    def preferences(self, user_id: str) -> One:
        return self._get("users", user_id, "preferences")

    def replace_preferences(self, user_id: str, preferences: list[JsonObject]) -> One:
        """Replace a user's preferences. An empty list deletes all preferences."""
        return self._send(Call("PUT", path_of("users", user_id, "preferences"), {"preferences": preferences}))

    def whoami(self) -> One:
        """Return the authenticated caller: tenant, user and scopes."""
        return self._get("whoami")

    def webhooks(self, limit: int = 100) -> Many:
        """List open webhooks, newest first."""
        return self._get("webhooks", limit=limit)

    def create_webhook(
        self, url: str, *, session_id: str | None = None, events: list[str] | None = None
    ) -> One:
        """Create a webhook that sends events to a URL. Default: all stored event types, from all sessions."""
        return self._post("webhooks", url=url, session_id=session_id, events=events)

    def close_webhook(self, webhook_id: str) -> One:
        """Close a webhook. Raises NotFound."""
        return self._send(Call("DELETE", path_of("webhooks", webhook_id)))

    def failing_webhooks(self, limit: int = 100) -> Many:
        """List feeds whose deliveries fail or were abandoned. A feed delivers one session's events to one webhook."""
        return self._get("webhooks", "failing", limit=limit)

    def retry_webhook(self, webhook_id: str, *, session_id: str | None = None) -> One:
        """Retry a webhook's failing feeds immediately, for one session or all sessions."""
        return self._send(
            Call("POST", path_of("webhooks", webhook_id, "retry"), query={"session_id": session_id})
        )

    def rotate_webhook_secret(self) -> One:
        """Create a webhook secret, which is returned only once.

        Deliveries are signed with the new and the previous secret.
        """
        return self._post("webhooks", "secret")

    def ready(self) -> One:
        """Return ``{status, off}``. `off`: problems that disable background flows or jobs.

        Raises Unavailable if a store doesn't respond.
        """
        return self._send(Call("GET", "/health/ready"))
