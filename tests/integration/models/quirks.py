"""Answers and refusals of real endpoints, over a real HTTP server."""

import json
from collections.abc import Callable
from typing import Any

from parley.testing.scripted_model import Answer, Computed, Raw, Reply, Request
from tests.integration.models.bench import GOOD

CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "flight_search", "arguments": '{"day": "friday"}'},
}


def completion(message: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Return a complete answer with some replaced members."""
    message = {"role": "assistant", "content": json.dumps(GOOD)} if message is None else message
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    body = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    return body | more


def sent(body: Any, status: int = 200) -> Raw:
    return Raw(json.dumps(body), status=status)


def streamed(*chunks: Any, done: bool = True) -> Raw:
    """Return chunks as server-sent events. Text is sent unchanged."""
    lines = [chunk if isinstance(chunk, str) else json.dumps(chunk) for chunk in chunks]
    events = "".join(f"data: {line}\n\n" for line in [*lines, *(["[DONE]"] if done else [])])
    return Raw(events, "text/event-stream")


def chunk(delta: Any = None, finish_reason: str | None = None, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return {
        "id": "x",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [choice],
    } | more


def refusing(refuses: Callable[[Request], Any], then: Reply, status: int = 400) -> Computed:
    """Return an endpoint that answers with the result of `refuses`, or with `then` if there is none."""

    def reply(request: Request) -> Reply:
        body = refuses(request)
        return then if body is None else sent(body, status)

    return Computed(reply)


def openai_error(message: str, **more: Any) -> dict[str, Any]:
    return {
        "error": {"message": message, "type": "invalid_request_error", "param": None, "code": None} | more
    }


def form_of(request: Request) -> str:
    """Return the form in which an object is requested."""
    return (request.body.get("response_format") or {}).get("type", "none")


GOOD_ANSWER = Answer(json=GOOD)
FINE = Answer(text="Fine.")
