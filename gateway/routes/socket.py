"""Conversations over WebSocket.

Answers come from the session's event log, so every open page of a session receives all answers. A client that
reconnects with `after` also receives the answers that it missed.
"""

import asyncio
import json
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Annotated, Any, Self

import orjson
from fastapi import APIRouter, Query, WebSocket, WebSocketDisconnect, status
from pydantic import BeforeValidator, ValidationError, model_validator

from gateway.auth.rate_limits import count_request
from gateway.dependencies import Dependencies, TheCaller, TheDependencies, leave_of
from orchestrator.errors import InvalidInput, NotFound, ParleyError, Unavailable
from orchestrator.telemetry import get_logger
from orchestrator.telemetry.metrics import LISTENERS
from orchestrator.turns.access import Caller
from orchestrator.turns.event import ENDINGS, TOKEN, Event
from orchestrator.turns.submission import (
    Action,
    IdempotencyKey,
    Identifier,
    LocaleTag,
    PlainText,
    RequestBody,
    Timezone,
    TurnRequest,
    invalid_input,
    require_bounded,
)
from orchestrator.turns.turn import FINISHED, IfBusy, TurnRecord
from orchestrator.types import JsonObject, SessionId, TurnId

router = APIRouter(prefix="/v1/sessions", tags=["events"])


def _name_alone(action: Any) -> Any:
    return {"name": action} if isinstance(action, str) else action


class SocketMessage(RequestBody):
    """A client's WebSocket message, with at least one of `currentMessage`, `dialogueAct` and `lastAction`.

    `dialogueAct`: name of a flow to start. `lastAction`: the action that the user clicked.
    """

    currentMessage: PlainText | None = None  # noqa: N815  # the name is public API
    dialogueAct: Identifier | None = None  # noqa: N815
    lastAction: Annotated[Action, BeforeValidator(_name_alone)] | None = None  # noqa: N815
    conversation_id: str | None = None
    idempotency_key: IdempotencyKey | None = None
    if_busy: IfBusy | None = None
    timezone: Timezone | None = None
    locale: LocaleTag | None = None

    @model_validator(mode="after")
    def _something_to_do(self) -> Self:
        if self.currentMessage is None and self.dialogueAct is None and self.lastAction is None:
            raise ValueError("requires currentMessage, lastAction or dialogueAct")
        return self

    def turn_request(self) -> TurnRequest:
        """Return a turn with the text or, if there is no text, with the action or dialogue act."""
        text, action = self.currentMessage, None
        if text is None:
            action = self.lastAction or Action(name="start_flow", payload={"dact": self.dialogueAct})
        return TurnRequest(
            text=text,
            action=action,
            idempotency_key=self.idempotency_key,
            if_busy=self.if_busy,
            timezone=self.timezone,
            locale=self.locale,
        )


NO_SUCH_SESSION = 4404
TRY_AGAIN_LATER = 1013
SLOW_FOR_S = 30.0

_log = get_logger(__name__)


@router.websocket("/{session_id}/ws")
async def converse(
    websocket: WebSocket,
    session_id: SessionId,
    dependencies: TheDependencies,
    caller: TheCaller,
    after: Annotated[int | None, Query(ge=0, le=2**53)] = None,
) -> None:
    """Receive the client's messages and send answers.

    `after`: event number after which answers are sent. Default: the last event's number.
    """
    await websocket.accept()
    conversation = _Conversation(websocket, dependencies, caller, session_id)
    try:
        await dependencies.sessions.store.get(caller.tenant_id, session_id)
    except ParleyError as error:
        with suppress(WebSocketDisconnect):
            await conversation.complain(error)
            await websocket.close(NO_SUCH_SESSION if isinstance(error, NotFound) else TRY_AGAIN_LATER)
        return
    sending = asyncio.create_task(conversation.send_answers(after), name="answers of a socket")
    receiving = asyncio.create_task(conversation.receive_messages(), name="messages of a socket")
    try:
        with LISTENERS.labels("socket").track_inprogress():
            await asyncio.wait({sending, receiving}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (sending, receiving):
            task.cancel()
        for ended in await asyncio.gather(sending, receiving, return_exceptions=True):
            if isinstance(ended, Exception):
                _log.error("A socket failed.", session=session_id, exc_info=ended)
        # The client may have closed the socket, or the connection may be broken.
        with suppress(RuntimeError, WebSocketDisconnect):
            await websocket.close(conversation.close_code)


@dataclass(slots=True)
class _Conversation:
    websocket: WebSocket
    dependencies: Dependencies
    caller: Caller
    session_id: SessionId
    sending: asyncio.Lock = field(default_factory=asyncio.Lock)
    close_code: int = TRY_AGAIN_LATER

    async def receive_messages(self) -> None:
        """Submit the client's messages until the client disconnects. If a message is invalid, send an error."""
        with suppress(WebSocketDisconnect):
            while True:
                message = await self.websocket.receive()
                if message["type"] == "websocket.disconnect":
                    return
                raw: str | bytes = message.get("text") or message.get("bytes") or b""
                try:
                    await count_request(self.dependencies.access, self.caller, self.session_id)
                    await self._submit(_parse(raw, self.session_id))
                except ParleyError as error:
                    await self.complain(error)

    async def _submit(self, message: SocketMessage) -> None:
        submission = message.turn_request().to_submission(self.session_id, self.caller.tenant_id)
        receipt = await self.dependencies.turns.submit(submission)
        if receipt.status in FINISHED:  # a repeated message, whose answer was already sent
            await self._send(await self._answer(receipt.turn_id, None))
        elif receipt.position > 0:
            queued = _message("queued", self.session_id, receipt.turn_id)
            await self._send({**queued, "position": receipt.position})

    async def send_answers(self, after: int | None) -> None:
        """Send answers and tokens until the client disconnects or its credentials expire."""
        events = self.dependencies.sessions.events.follow(
            self.caller.tenant_id,
            self.session_id,
            after=after,
            leave=leave_of(self.dependencies.access, self.caller),
        )
        try:
            async with aclosing(events):
                async for event in events:
                    if event.type == TOKEN:
                        await self._send(_piece(self.session_id, event))
                    elif event.type in ENDINGS and event.turn_id is not None and event.number is not None:
                        await self._send(await self._answer(event.turn_id, event))
        except (Unavailable, TimeoutError) as error:
            _log.warning("A socket was closed.", session=self.session_id, error=error)
        except (WebSocketDisconnect, RuntimeError):
            return  # the client has disconnected
        else:
            self.close_code = status.WS_1008_POLICY_VIOLATION

    async def _answer(self, turn_id: TurnId, event: Event | None) -> JsonObject:
        record = await self.dependencies.turns.inbox.turn(self.caller.tenant_id, turn_id)
        number = None if event is None else event.number
        if event is not None and event.type == "failed":
            return _failure(record, event.payload, number)
        return _answer(record, number)

    async def complain(self, error: ParleyError) -> None:
        about: JsonObject = {"code": error.code, "detail": str(error)}
        if isinstance(error, InvalidInput):
            about["field"] = error.field
        await self._send({**_message("error", self.session_id), "error": about})

    async def _send(self, message: JsonObject) -> None:
        async with self.sending, asyncio.timeout(SLOW_FOR_S):
            await self.websocket.send_text(orjson.dumps(message).decode())


def _parse(raw: str | bytes, session_id: SessionId) -> SocketMessage:
    """Parse a client's message. Raises InvalidInput if it is invalid or names another session."""
    require_bounded(raw.encode() if isinstance(raw, str) else raw)
    try:
        message = SocketMessage.model_validate(json.loads(raw))
    except ValidationError as error:
        raise invalid_input(error) from error
    except ValueError as error:
        raise InvalidInput("The message is not JSON in UTF-8.", field="body") from error
    if message.conversation_id not in {None, session_id}:
        raise InvalidInput("This socket belongs to another session.", field="conversation_id")
    return message


def _message(kind: str, session_id: SessionId, turn_id: TurnId | None = None) -> JsonObject:
    """Return the members common to all server messages except those with a part of an answer."""
    return {
        "type": kind,
        "conversation_id": session_id,
        "turn_id": turn_id,
        "number": None,
        "text": None,
        "options": [],
        "block": None,
        "error": None,
    }


def _answer(record: TurnRecord, number: int | None) -> JsonObject:
    result: dict[str, Any] = record.result or {}
    return {
        **_message("text", record.session_id, record.turn_id),
        "number": number,
        "text": result.get("reply"),
        "options": result.get("actions") or [],
        "block": _block(result.get("frame")),
        "earlier_blocks": [_block(frame) for frame in result.get("earlier_frames", ())],
    }


def _block(frame: JsonObject | None) -> JsonObject | None:
    if frame is None:
        return None
    members = ("frame_id", "flow_id", "data", "table_id", "rows")
    return {**frame.get("block", {}), **{name: frame.get(name) for name in members}}


def _failure(record: TurnRecord, payload: JsonObject, number: int | None) -> JsonObject:
    result: dict[str, Any] = record.result or {}
    text = payload.get("reply") or payload.get("message") or result.get("reply")
    code = payload.get("code") or payload.get("status") or record.status.value
    return {
        **_message("error", record.session_id, record.turn_id),
        "number": number,
        "text": text,
        "error": {"code": code, "detail": text or "The turn failed."},
    }


def _piece(session_id: SessionId, event: Event) -> JsonObject:
    """Return the message for a part of an answer. `token` replaces the answer's text from `offset` on."""
    return {
        "type": TOKEN,
        "conversation_id": session_id,
        "turn_id": event.turn_id,
        "token": event.payload["text"],
        "offset": event.payload["offset"],
    }
