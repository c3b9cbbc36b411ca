"""The gateway's calls as methods, written once for both clients. How a call is sent is theirs."""

from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

from orchestrator.client.calls import Call, path_of
from orchestrator.types import JsonObject, new_id

One = TypeVar("One")  # an object, or the promise of one
Many = TypeVar("Many")  # a list of objects, or the promise of one


class Methods(ABC, Generic[One, Many]):
    """Every method raises the errors of `orchestrator.errors`; `Unavailable` when no gateway answers.

    Turns come in the form of `turn_object`.
    """

    @abstractmethod
    def _send(self, call: Call) -> Any: ...

    def _get(self, *path: str, **query: object) -> Any:
        return self._send(Call("GET", path_of(*path), query=query))

    def _post(self, *path: str, keyed: bool = False, **body: object) -> Any:
        return self._send(Call("POST", path_of(*path), body or None, keyed=keyed))

    def create_session(
        self,
        domain: str | None = None,
        *,
        session_id: str | None = None,
        user_id: str | None = None,
        if_busy: str | None = None,
        webhook: str | None = None,
    ) -> One:
        """Create a session, or return the one that has this identifier already.

        `webhook`: an address that the session's events are sent to; see `verify_webhook`.
        """
        return self._post(
            "sessions",
            domain=domain,
            session_id=session_id,
            user_id=user_id,
            if_busy=if_busy,
            webhook=webhook,
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
    ) -> One:
        """Submit one turn: a receipt, or with `wait_s` the turn as it is after at most so many seconds.

        Without an `idempotency_key` it gets one of its own, so that it can be repeated.
        """
        body = {
            "text": text,
            "action": action,
            "idempotency_key": new_id("client") if idempotency_key is None else idempotency_key,
            "sequence": sequence,
            "if_busy": if_busy,
        }
        path = path_of("sessions", session_id, "turns")
        return self._send(Call("POST", path, body, {"wait": wait_s}, keyed=True))

    def turn(self, turn_id: str, wait_s: float | None = None) -> One:
        """One turn as it is now, or with `wait_s` as it is after at most so many seconds. Raises NotFound."""
        return self._get("turns", turn_id, wait=wait_s)

    def turns(self, status: str | None = None, *, session_id: str | None = None, limit: int = 100) -> Many:
        """Turns, newest first; of one status (`queued`, `running`, `done`, …), of one session or of all."""
        return self._get("turns", status=status, session_id=session_id, limit=limit)

    def cancel_turn(self, turn_id: str) -> One:
        """Cancel a turn that waits, ask one at work to stop; a finished one stays as it is."""
        return self._post("turns", turn_id, "cancel")

    def sessions(self, limit: int = 100) -> Many:
        """The tenant's sessions, newest activity first."""
        return self._get("sessions", limit=limit)

    def session(self, session_id: str, *, at: int | None = None) -> One:
        """One session with its working state, or, with plan and history, as it was after an epoch. Raises NotFound."""
        return self._get("sessions", session_id, at=at)

    def close_session(self, session_id: str) -> One:
        """Close a session; its history stays, and it takes no more turns."""
        return self._send(Call("DELETE", path_of("sessions", session_id)))

    def history(self, session_id: str, limit: int = 200, *, before: int | None = None) -> Many:
        """The last lines, oldest first; with `before` those of turns with a lower `seq`."""
        return self._get("sessions", session_id, "history", before=before, limit=limit)

    def session_turns(self, session_id: str, *, before: int | None = None, limit: int = 50) -> Many:
        """A session's turns with their times, newest first."""
        return self._get("sessions", session_id, "turns", before=before, limit=limit)

    def frames(self, session_id: str) -> Many:
        """The newest frame of each flow."""
        return self._get("sessions", session_id, "frames")

    def frame_page(self, session_id: str, frame_id: str, number: int) -> One:
        """Page `number`, from 1, of a frame's table: 512 rows at most."""
        return self._get("sessions", session_id, "frames", frame_id, "page", str(number))

    def scratchpad(self, session_id: str) -> Many:
        """The session's shared notes, the least recently used first."""
        return self._get("sessions", session_id, "scratchpad")

    def turn_journal(self, turn_id: str) -> One:
        """Show operators what a turn did: `steps` (its calls) and `signals` (predictions, checks, …)."""
        return self._get("turns", turn_id, "journal")

    def journal(self, session_id: str, *, turn_id: str | None = None, limit: int = 200) -> Many:
        """Model and tool calls, newest first."""
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
        """``up`` or ``down``, words, or what would have been right (``reply``, ``dact``, ``slots``)."""
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
        """What people said of turns, newest first; of one session or of all."""
        return self._get("feedback", session_id=session_id, limit=limit)

    def plan(self, session_id: str) -> One:
        """The session's latest plan with its revisions. Raises `NotFound` when it never had one."""
        return self._get("sessions", session_id, "plan")

    def state(self, session_id: str, epoch: int | None = None) -> One:
        """The working state, as it is or as it was at an epoch: ``{epoch, state}``. Raises NotFound."""
        return self._get("sessions", session_id, "state", epoch=epoch)

    def effects(self, session_id: str, limit: int = 200) -> Many:
        """List what tools did for a session, oldest first."""
        return self._get("sessions", session_id, "effects", limit=limit)

    def approvals(
        self, status: str | None = None, *, session_id: str | None = None, limit: int = 100
    ) -> Many:
        """Newest first; `status` is for example ``pending``."""
        return self._get("approvals", status=status, session_id=session_id, limit=limit)

    def decide_approval(
        self, approval_id: str, decision: str, *, reason: str | None = None, decided_by: str | None = None
    ) -> One:
        """``grant`` or ``deny``, once. Raises `Refused` when it comes too late."""
        return self._post(
            "approvals", approval_id, keyed=True, decision=decision, reason=reason, decided_by=decided_by
        )

    def rollback(self, session_id: str, epoch: int) -> One:
        """Go back to the state of an epoch, as a new one (ST-2). Raises SessionBusy while turns are unfinished."""
        return self._post("sessions", session_id, "rollback", epoch=epoch)

    def branch(self, session_id: str, *, epoch: int | None = None, branch_id: str | None = None) -> One:
        """Make a session that goes on from an epoch of this one, by default the present one (ST-4).

        Raises NotFound, and Refused for a `branch_id` that is in use; one that was branched off alike is returned.
        """
        name = new_id("session") if branch_id is None else branch_id
        return self._post("sessions", session_id, "branch", keyed=True, epoch=epoch, session_id=name)

    def compare(self, session_id: str, other: str) -> One:
        """Two sessions from where they part: ``{left, right, common, turns, effects}``. Raises NotFound."""
        return self._get("sessions", session_id, "compare", **{"with": other})

    def repairs(self, session_id: str) -> One:
        """Show operators what is wrong with a session, what is open in it, and the repairs that fit."""
        return self._get("sessions", session_id, "repairs")

    def preview_repairs(self, session_id: str, repairs: list[JsonObject]) -> One:
        """Say what repairs would change, what the user would be told, and what would keep them from being made."""
        return self._post("sessions", session_id, "repairs", "preview", repairs=repairs)

    def repair(
        self, session_id: str, repairs: list[JsonObject], *, epoch: int, why: str, wait_s: float = 30.0
    ) -> One:
        """Make repairs as a turn. Raises Refused when the session has gone on, or something would be broken."""
        body = {"repairs": repairs, "epoch": epoch, "why": why, "idempotency_key": new_id("client")}
        path = path_of("sessions", session_id, "repairs")
        return self._send(Call("POST", path, body, {"wait": wait_s}, keyed=True))

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
        """Start an Internal flow, or those of a trigger; one that is at work on the session already is joined."""
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
        """Runs of Internal flows, newest first; of one session, flow or status, or of all."""
        return self._get("runs", session_id=session_id, flow=flow, status=status, limit=limit)

    def housekeeping_debt(self, *, limit: int = 100) -> One:
        """Show housekeeping that was put off: ``{turn_wait_s, sessions: [{session_id, runs, oldest_s}]}``."""
        return self._get("runs", "debt", limit=limit)

    def run(self, run_id: str) -> One:
        """A run, with the identifiers of its `chain`."""
        return self._get("runs", run_id)

    def run_items(self, run_id: str, *, after: int = -1, limit: int = 100) -> Many:
        """Items of a run by position, from the one after `after`: input, status, output or error."""
        return self._get("runs", run_id, "items", after=after, limit=limit)

    def cancel_run(self, run_id: str) -> One:
        """End a run that has not ended; what waits for it is blocked. Gives the run."""
        return self._post("runs", run_id, "cancel")

    def redo_run(self, run_id: str) -> One:
        """Run it once more by hand; the identifier of the new run."""
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
        """Keep a document and have it embedded; the same text is kept once."""
        return self._post(
            "documents", text=text, title=title, domain=domain, user_id=user_id, labels=list(labels)
        )

    def documents(
        self, *, user_id: str | None = None, domain: str | None = None, after: str = "", limit: int = 100
    ) -> Many:
        """Documents without their texts, by identifier."""
        return self._get("documents", user_id=user_id, domain=domain, after=after, limit=limit)

    def search_documents(
        self, question: str, *, user_id: str | None = None, domain: str | None = None, limit: int = 10
    ) -> Many:
        """The passages that answer a question, best first."""
        return self._get("documents", "search", q=question, user_id=user_id, domain=domain, limit=limit)

    def delete_document(self, document_id: str, *, user_id: str | None = None) -> Any:
        """Remove a document."""
        return self._send(Call("DELETE", path_of("documents", document_id), query={"user_id": user_id}))

    def preferences(self, user_id: str) -> One:
        """Everything that is remembered of a user."""
        return self._get("users", user_id, "preferences")

    def replace_preferences(self, user_id: str, preferences: list[JsonObject]) -> One:
        """Let these be all that is remembered; an empty list forgets everything."""
        return self._send(Call("PUT", path_of("users", user_id, "preferences"), {"preferences": preferences}))

    def whoami(self) -> One:
        """The caller as the gateway knows them."""
        return self._get("whoami")

    def webhooks(self, limit: int = 100) -> Many:
        """Where events are sent, newest first; closed ones are left out."""
        return self._get("webhooks", limit=limit)

    def create_webhook(
        self, url: str, *, session_id: str | None = None, events: list[str] | None = None
    ) -> One:
        """Have events sent to an address: of one session or of all, of some types or of all."""
        return self._post("webhooks", url=url, session_id=session_id, events=events)

    def close_webhook(self, webhook_id: str) -> One:
        """Send an address nothing more. Gives the webhook. Raises NotFound."""
        return self._send(Call("DELETE", path_of("webhooks", webhook_id)))

    def failing_webhooks(self, limit: int = 100) -> Many:
        """List the feeds that are tried again or were given up, by webhook and session."""
        return self._get("webhooks", "failing", limit=limit)

    def retry_webhook(self, webhook_id: str, *, session_id: str | None = None) -> One:
        """Deliver again, at once, from where it stopped."""
        return self._send(
            Call("POST", path_of("webhooks", webhook_id, "retry"), query={"session_id": session_id})
        )

    def rotate_webhook_secret(self) -> One:
        """Make a new secret, shown this once; deliveries are signed with it and with the one before."""
        return self._post("webhooks", "secret")

    def ready(self) -> One:
        """Raises `Unavailable` naming what is missing."""
        return self._send(Call("GET", "/health/ready"))
