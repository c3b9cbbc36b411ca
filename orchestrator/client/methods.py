"""The gateway's calls as methods, written once for both clients. How a call is sent is theirs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

from orchestrator.client import calls
from orchestrator.client.calls import Call
from orchestrator.types import JsonObject

One = TypeVar("One")
"""An object, or the promise of one."""
Many = TypeVar("Many")
"""A list of objects, or the promise of one."""


class Methods(ABC, Generic[One, Many]):
    """Every method raises the errors of `orchestrator.errors`; `Unavailable` when no gateway answers.

    Turns come in the form of `turn_object`.
    """

    @abstractmethod
    def _send(self, call: Call) -> Any: ...

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

        `webhook`: an address that is told the session's events; see `verify_webhook`.
        """
        return self._send(calls.create_session(domain, session_id, user_id, if_busy, webhook))

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
        """Submit one turn: a receipt, or with `wait_s` the turn as it is after at most so many seconds."""
        return self._send(
            calls.submit(
                session_id,
                text,
                action=action,
                idempotency_key=idempotency_key,
                sequence=sequence,
                if_busy=if_busy,
                wait_s=wait_s,
            )
        )

    def turn(self, turn_id: str, wait_s: float | None = None) -> One:
        """One turn as it is now, or with `wait_s` as it is after at most so many seconds. Raises NotFound."""
        return self._send(calls.turn(turn_id, wait_s))

    def turns(self, status: str | None = None, *, session_id: str | None = None, limit: int = 100) -> Many:
        """Turns, newest first; of one status (`queued`, `running`, `done`, …), of one session or of all."""
        return self._send(calls.turns(status, session_id, limit))

    def cancel_turn(self, turn_id: str) -> One:
        """Cancel a turn that waits, ask one at work to stop; a finished one stays as it is."""
        return self._send(calls.cancel_turn(turn_id))

    def retry_turn(self, turn_id: str) -> One:
        """Put a quarantined turn at the end of its session's queue. Raises Refused for any other."""
        return self._send(calls.retry_turn(turn_id))

    def drop_turn(self, turn_id: str) -> One:
        """Cancel a quarantined or queued turn for good. Raises Refused when it has finished."""
        return self._send(calls.drop_turn(turn_id))

    def sessions(self, limit: int = 100) -> Many:
        """The tenant's sessions, newest activity first."""
        return self._send(calls.sessions(limit))

    def session(self, session_id: str) -> One:
        """One session with its working state. Raises NotFound."""
        return self._send(calls.session(session_id))

    def close_session(self, session_id: str) -> One:
        """Close a session; its history stays, and it takes no more turns."""
        return self._send(calls.close_session(session_id))

    def history(self, session_id: str, limit: int = 200, *, before: int | None = None) -> Many:
        """The last lines, oldest first; with `before` those of turns with a lower `seq`."""
        return self._send(calls.history(session_id, before, limit))

    def session_turns(self, session_id: str, *, before: int | None = None, limit: int = 50) -> Many:
        """A session's turns with their times, newest first."""
        return self._send(calls.session_turns(session_id, before, limit))

    def frames(self, session_id: str) -> Many:
        """The newest frame of each flow."""
        return self._send(calls.frames(session_id))

    def frame_page(self, session_id: str, frame_id: str, number: int) -> One:
        """Page `number`, from 1, of a frame's table: 512 rows at most."""
        return self._send(calls.frame_page(session_id, frame_id, number))

    def scratchpad(self, session_id: str) -> Many:
        """The session's shared notes, the least recently used first."""
        return self._send(calls.scratchpad(session_id))

    def turn_journal(self, turn_id: str) -> One:
        """What a turn did, for operators: `steps` (its calls) and `signals` (predictions, checks, …)."""
        return self._send(calls.turn_journal(turn_id))

    def journal(self, session_id: str, *, turn_id: str | None = None, limit: int = 200) -> Many:
        """Model and tool calls, newest first."""
        return self._send(calls.journal(session_id, turn_id, limit))

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
        return self._send(calls.give_feedback(turn_id, rating, comment, correction, author))

    def plan(self, session_id: str) -> One:
        """The session's latest plan with its revisions. Raises `NotFound` when it never had one."""
        return self._send(calls.plan(session_id))

    def state(self, session_id: str, epoch: int | None = None) -> One:
        """The working state, as it is or as it was at an epoch: ``{epoch, state}``. Raises NotFound."""
        return self._send(calls.state(session_id, epoch))

    def effects(self, session_id: str, limit: int = 200) -> Many:
        """What tools did for a session, oldest first."""
        return self._send(calls.effects(session_id, limit))

    def approvals(
        self, status: str | None = None, *, session_id: str | None = None, limit: int = 100
    ) -> Many:
        """Newest first; `status` is for example ``pending``."""
        return self._send(calls.approvals(status, session_id, limit))

    def decide_approval(
        self, approval_id: str, decision: str, *, reason: str | None = None, decided_by: str | None = None
    ) -> One:
        """``grant`` or ``deny``, once. Raises `Refused` when it comes too late."""
        return self._send(calls.decide_approval(approval_id, decision, reason, decided_by))

    def rollback(self, session_id: str, epoch: int) -> One:
        """Go back to the state of an epoch, as a new one (ST-2). Raises SessionBusy while turns are unfinished."""
        return self._send(calls.rollback(session_id, epoch))

    def start_run(
        self,
        flow: str,
        *,
        session_id: str | None = None,
        inputs: list[Any] | None = None,
        options: JsonObject | None = None,
        parameters: JsonObject | None = None,
    ) -> One:
        """Start an Internal flow; one that is at work on the session already is joined."""
        return self._send(calls.start_run(flow, session_id, inputs or [], options or {}, parameters or {}))

    def runs(
        self,
        *,
        session_id: str | None = None,
        flow: str | None = None,
        status: str | None = None,
        limit: int = 100,
    ) -> Many:
        """Runs of Internal flows, newest first; of one session, flow or status, or of all."""
        return self._send(calls.runs(session_id, flow, status, limit))

    def housekeeping_debt(self, *, limit: int = 100) -> One:
        """What is put off for turns: ``{turn_wait_s, sessions: [{session_id, runs, oldest_s}]}``."""
        return self._send(calls.housekeeping_debt(limit))

    def run(self, run_id: str) -> One:
        """A run, with the identifiers of its `chain`."""
        return self._send(calls.run(run_id))

    def run_items(self, run_id: str, *, after: int = -1, limit: int = 100) -> Many:
        """Items of a run by position, from the one after `after`: input, status, output or error."""
        return self._send(calls.run_items(run_id, after, limit))

    def cancel_run(self, run_id: str) -> One:
        """End a run that has not ended; what waits for it is blocked. Gives the run."""
        return self._send(calls.cancel_run(run_id))

    def redo_run(self, run_id: str) -> One:
        """Run it once more by hand; the identifier of the new run."""
        return self._send(calls.redo_run(run_id))

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
        return self._send(calls.add_document(text, title, domain, user_id, list(labels)))

    def documents(
        self, *, user_id: str | None = None, domain: str | None = None, after: str = "", limit: int = 100
    ) -> Many:
        """Documents without their texts, by identifier."""
        return self._send(calls.documents(user_id, domain, after, limit))

    def search_documents(
        self, question: str, *, user_id: str | None = None, domain: str | None = None, limit: int = 10
    ) -> Many:
        """The passages that answer a question, best first."""
        return self._send(calls.search_documents(question, user_id, domain, limit))

    def delete_document(self, document_id: str, *, user_id: str | None = None) -> Any:
        """Remove a document."""
        return self._send(calls.delete_document(document_id, user_id))

    def preferences(self, user_id: str) -> One:
        """Everything that is remembered of a user."""
        return self._send(calls.preferences(user_id))

    def replace_preferences(self, user_id: str, preferences: list[JsonObject]) -> One:
        """Let these be all that is remembered; an empty list forgets everything."""
        return self._send(calls.replace_preferences(user_id, preferences))

    def whoami(self) -> One:
        """The caller as the gateway knows him."""
        return self._send(calls.whoami())

    def webhooks(self, limit: int = 100) -> Many:
        """Where events are told, newest first; closed ones are left out."""
        return self._send(calls.webhooks(limit))

    def create_webhook(
        self, url: str, *, session_id: str | None = None, events: list[str] | None = None
    ) -> One:
        """Have events told to an address: of one session or of all, of some types or of all."""
        return self._send(calls.create_webhook(url, session_id, events))

    def close_webhook(self, webhook_id: str) -> One:
        """Tell an address nothing more. Gives the webhook. Raises NotFound."""
        return self._send(calls.close_webhook(webhook_id))

    def failing_webhooks(self, limit: int = 100) -> Many:
        """What is tried again, and what was given up, by webhook and session."""
        return self._send(calls.failing_webhooks(limit))

    def retry_webhook(self, webhook_id: str, *, session_id: str | None = None) -> One:
        """Deliver again, at once, from where it stopped."""
        return self._send(calls.retry_webhook(webhook_id, session_id))

    def rotate_webhook_secret(self) -> One:
        """A new secret, shown this once; deliveries are signed with it and with the one before."""
        return self._send(calls.rotate_webhook_secret())

    def ready(self) -> One:
        """Raises `Unavailable` naming what is missing."""
        return self._send(calls.ready())
