"""Loans and text messages: services for repeated calls, interrupted calls and status queries."""

from __future__ import annotations

import uuid

from parley import FailureCategory, JsonObject, Service, ToolCall, ToolFailure


def _place(thing: str, call: ToolCall) -> str:
    return f"{call.session_id}:{thing}"


class Loans(Service):
    """A record of each session's loans, and of the things that are not on the shelf."""

    async def create(self, *, thing: str, call: ToolCall, delivery: str = "") -> JsonObject:
        """Lend a thing: the loan first, then the shelf, each once per call."""
        draft: JsonObject = {"thing": thing, "weeks": 1, "key": call.idempotency_key, "last": ""}
        draft |= {"session": call.session_id, "delivery": delivery}
        loan = await self.records.create("loans", _place(thing, call), draft)
        if loan["key"] != call.idempotency_key:
            raise ToolFailure(FailureCategory.VALIDATION_ERROR, f"You have the {thing}.")
        await self.records.create("shelf", call.idempotency_key, {"gone": thing})
        return {"thing": thing, "weeks": loan["weeks"]}

    async def extend(self, *, thing: str, call: ToolCall) -> JsonObject:
        """Extend a loan by a week, once per call."""
        loan = await self._find(thing, call)
        if loan["last"] != call.idempotency_key:
            changes: JsonObject = {"weeks": loan["weeks"] + 1, "last": call.idempotency_key}
            await self.records.update("loans", _place(thing, call), changes)
            loan |= changes
        return {"thing": thing, "weeks": loan["weeks"]}

    async def outcome(self, *, idempotency_key: str, thing: str, call: ToolCall) -> JsonObject:
        """Return whether a call has extended a loan."""
        loan = await self._find(thing, call)
        if loan["last"] != idempotency_key:
            return {"status": "not_done"}
        return {"status": "done", "data": {"thing": thing, "weeks": loan["weeks"]}}

    async def list(self, *, call: ToolCall) -> JsonObject:
        """List the loans of this session."""
        return {"loans": [*await self.records.find("loans", {"session": call.session_id})]}

    async def _find(self, thing: str, call: ToolCall) -> JsonObject:
        loan = await self.records.get("loans", _place(thing, call))
        if loan is None:
            raise ToolFailure(FailureCategory.NOT_FOUND, f"You have not borrowed the {thing}.")
        return loan


class Messages(Service):
    """A text message service. Sent messages can't be recalled, and a second call sends a second message."""

    async def send(self, *, thing: str, call: ToolCall) -> JsonObject:
        """Send a reminder."""
        message: JsonObject = {"thing": thing, "call": call.idempotency_key}
        await self.records.create("sent", str(uuid.uuid4()), message)
        return {"thing": thing}

    async def outcome(self, *, idempotency_key: str, thing: str) -> JsonObject:
        """Return whether a call has sent its message."""
        sent = await self.records.find("sent", {"call": idempotency_key})
        return {"status": "done", "data": {"thing": thing}} if sent else {"status": "not_done"}
