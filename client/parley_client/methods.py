"""The API's calls as methods, written once for both clients, which send them."""

from datetime import datetime
from typing import Any

from parley_client.calls import Call, path_of
from parley_client.operating import Many, One, OperatorMethods
from parley_client.types import JsonObject, new_id


class Methods(OperatorMethods[One, Many]):
    """The API's calls.

    Every method raises the errors of `parley_client.errors`; `Unavailable` if no gateway responds.

    Turns have the form of `turn_object`.
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
        """Create a session, or return the existing one with this ID.

        `webhook`: URL that receives the session's events; see `verify_webhook`. `timezone` (an IANA name)
        and `locale` (such as ``de-DE``): the user's.
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
        """Submit a turn: returns a receipt, or with `wait_s` the turn after at most that many seconds.

        `timezone` and `locale`: the user's, if they have changed; stored with the session. Without an
        `idempotency_key` a new one is generated, so that the request can be retried.
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
        """Return a turn now, or with `wait_s` after at most that many seconds. Raises NotFound."""
        return self._get("turns", turn_id, wait=wait_s)

    def turns(self, status: str | None = None, *, session_id: str | None = None, limit: int = 100) -> Many:
        """Return turns, newest first; of one status (`queued`, `running`, `done`, …), of one session or of all."""
        return self._get("turns", status=status, session_id=session_id, limit=limit)

    def cancel_turn(self, turn_id: str) -> One:
        """Cancel a queued turn, or ask a running one to stop; a finished one stays unchanged."""
        return self._post("turns", turn_id, "cancel")

    def retry_turn(self, turn_id: str) -> One:
        """Queue a quarantined turn again, as its session's last. Raises Refused for any other, and Forbidden."""
        return self._post("turns", turn_id, "retry")

    def sessions(self, limit: int = 100) -> Many:
        """Return the tenant's sessions, most recently active first."""
        return self._get("sessions", limit=limit)

    def session(self, session_id: str, *, at: int | None = None) -> One:
        """Return a session with its working state, or as it was after epoch `at`, with plan and history.

        Raises NotFound.
        """
        return self._get("sessions", session_id, at=at)

    def flows(self, domain: str) -> Many:
        """Return a domain's flows with their slots, confirmation and tools."""
        return self._get("domains", domain, "flows")

    def close_session(self, session_id: str) -> One:
        """Close a session; its history stays, and it accepts no more turns."""
        return self._send(Call("DELETE", path_of("sessions", session_id)))

    def history(self, session_id: str, limit: int = 200, *, before: int | None = None) -> Many:
        """Return the last utterances, oldest first; with `before` those of turns with a lower `seq`."""
        return self._get("sessions", session_id, "history", before=before, limit=limit)

    def session_turns(self, session_id: str, *, before: int | None = None, limit: int = 50) -> Many:
        """Return a session's turns with their times, newest first."""
        return self._get("sessions", session_id, "turns", before=before, limit=limit)

    def frames(self, session_id: str) -> Many:
        """Return the newest frame of each flow."""
        return self._get("sessions", session_id, "frames")

    def frame_page(self, session_id: str, frame_id: str, number: int) -> One:
        """Return page `number`, from 1, of a frame's table: at most 512 rows."""
        return self._get("sessions", session_id, "frames", frame_id, "page", str(number))

    def scratchpad(self, session_id: str) -> Many:
        """Return the session's scratchpad entries, least recently used first."""
        return self._get("sessions", session_id, "scratchpad")

    def journal(self, session_id: str, *, turn_id: str | None = None, limit: int = 200) -> Many:
        """Return model and tool calls, newest first."""
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
        """Submit feedback: ``up`` or ``down``, a comment, or a correction (``reply``, ``dact``, ``slots``)."""
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
        """Return feedback on turns, newest first; of one session or of all."""
        return self._get("feedback", session_id=session_id, limit=limit)

    def plan(self, session_id: str) -> One:
        """Return the session's latest plan with its revisions. Raises `NotFound` if it never had one."""
        return self._get("sessions", session_id, "plan")

    def state(self, session_id: str, epoch: int | None = None) -> One:
        """Return the working state, now or at an epoch: ``{epoch, state}``. Raises NotFound."""
        return self._get("sessions", session_id, "state", epoch=epoch)

    def effects(self, session_id: str, limit: int = 200) -> Many:
        """Return tools' side effects for a session, oldest first."""
        return self._get("sessions", session_id, "effects", limit=limit)

    def approvals(
        self, status: str | None = None, *, session_id: str | None = None, limit: int = 100
    ) -> Many:
        """Return approvals, newest first; `status`: for example ``pending``."""
        return self._get("approvals", status=status, session_id=session_id, limit=limit)

    def decide_approval(
        self, approval_id: str, decision: str, *, reason: str | None = None, decided_by: str | None = None
    ) -> One:
        """Decide an approval once: ``grant`` or ``deny``. Raises `Refused` if it is too late."""
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
        """Start the flow that lists an outside event, now or at a time. A repeated key returns the first event."""
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
        """Return outside events and reminders, those to come first."""
        return self._get("sessions", session_id, "events", "scheduled", limit=limit)

    def move_event(self, session_id: str, event_id: str, not_before: datetime) -> One:
        """Change when an event is due. Raises `Refused` if it was delivered or canceled."""
        body: JsonObject = {"not_before": not_before.isoformat()}
        return self._send(Call("PUT", path_of("sessions", session_id, "events", event_id), body))

    def cancel_event(self, session_id: str, event_id: str) -> One:
        """Cancel an event by its ID or key, with its turn if that hasn't started."""
        return self._send(Call("DELETE", path_of("sessions", session_id, "events", event_id)))

    def rollback(self, session_id: str, epoch: int) -> One:
        """Roll back to the state of an epoch, as a new epoch (ST-2).

        Raises SessionBusy while turns are unfinished.
        """
        return self._post("sessions", session_id, "rollback", epoch=epoch)

    def branch(self, session_id: str, *, epoch: int | None = None, branch_id: str | None = None) -> One:
        """Fork a session at an epoch, by default the current one (ST-4).

        Raises NotFound, and Refused for a `branch_id` in use; an identical existing fork is returned.
        """
        name = new_id("session") if branch_id is None else branch_id
        return self._post("sessions", session_id, "branch", keyed=True, epoch=epoch, session_id=name)

    def compare(self, session_id: str, other: str) -> One:
        """Compare two sessions from where they diverge: ``{left, right, common, turns, effects}``.

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
        """Start a background flow, or those of a trigger; a flow already running on the session is joined."""
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
        """Return background runs, newest first; of one session, flow or status, or of all."""
        return self._get("runs", session_id=session_id, flow=flow, status=status, limit=limit)

    def housekeeping_debt(self, *, limit: int = 100) -> One:
        """Return deferred maintenance: ``{turn_wait_s, sessions: [{session_id, runs, oldest_s}]}``."""
        return self._get("runs", "debt", limit=limit)

    def run(self, run_id: str) -> One:
        """Return a run, with the IDs of its `chain`."""
        return self._get("runs", run_id)

    def run_items(self, run_id: str, *, after: int = -1, limit: int = 100) -> Many:
        """Return a run's items by position, after `after`: input, status, output or error."""
        return self._get("runs", run_id, "items", after=after, limit=limit)

    def cancel_run(self, run_id: str) -> One:
        """Cancel an unfinished run and return it; its dependents are blocked."""
        return self._post("runs", run_id, "cancel")

    def redo_run(self, run_id: str) -> One:
        """Rerun manually; return the new run's ID."""
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
        """Store a document and embed it; the same text is stored once."""
        return self._post(
            "documents", text=text, title=title, domain=domain, user_id=user_id, labels=list(labels)
        )

    def documents(
        self, *, user_id: str | None = None, domain: str | None = None, after: str = "", limit: int = 100
    ) -> Many:
        """Return documents without their texts, by ID."""
        return self._get("documents", user_id=user_id, domain=domain, after=after, limit=limit)

    def search_documents(
        self, question: str, *, user_id: str | None = None, domain: str | None = None, limit: int = 10
    ) -> Many:
        """Return the passages that answer a question, best first."""
        return self._get("documents", "search", q=question, user_id=user_id, domain=domain, limit=limit)

    def delete_document(self, document_id: str, *, user_id: str | None = None) -> Any:
        """Delete a document."""
        return self._send(Call("DELETE", path_of("documents", document_id), query={"user_id": user_id}))

    def preferences(self, user_id: str) -> One:
        """Return everything that is remembered about a user."""
        return self._get("users", user_id, "preferences")

    def replace_preferences(self, user_id: str, preferences: list[JsonObject]) -> One:
        """Replace everything that is remembered; an empty list forgets everything."""
        return self._send(Call("PUT", path_of("users", user_id, "preferences"), {"preferences": preferences}))

    def whoami(self) -> One:
        """Return the caller as authenticated by the gateway."""
        return self._get("whoami")

    def webhooks(self, limit: int = 100) -> Many:
        """Return open webhooks, newest first."""
        return self._get("webhooks", limit=limit)

    def create_webhook(
        self, url: str, *, session_id: str | None = None, events: list[str] | None = None
    ) -> One:
        """Send events to a URL: of one session or of all, of some types or of all."""
        return self._post("webhooks", url=url, session_id=session_id, events=events)

    def close_webhook(self, webhook_id: str) -> One:
        """Close a webhook and return it. Raises NotFound."""
        return self._send(Call("DELETE", path_of("webhooks", webhook_id)))

    def failing_webhooks(self, limit: int = 100) -> Many:
        """Return failing and abandoned feeds, by webhook and session."""
        return self._get("webhooks", "failing", limit=limit)

    def retry_webhook(self, webhook_id: str, *, session_id: str | None = None) -> One:
        """Resume delivery immediately."""
        return self._send(
            Call("POST", path_of("webhooks", webhook_id, "retry"), query={"session_id": session_id})
        )

    def rotate_webhook_secret(self) -> One:
        """Create a secret, shown once; deliveries are signed with it and its predecessor."""
        return self._post("webhooks", "secret")

    def ready(self) -> One:
        """Raise `Unavailable` naming what is missing, if anything."""
        return self._send(Call("GET", "/health/ready"))
