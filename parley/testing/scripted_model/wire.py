"""Response bodies of the OpenAI API: completions, chunks, errors and embeddings."""

import base64
import re
import struct
import time
from collections.abc import Iterator
from hashlib import blake2b
from math import sqrt

import orjson

from orchestrator.types import Json, JsonObject, new_id
from parley.testing.scripted_model.script import Answer, Fail, Request, ToolUse

_PIECES = re.compile(r"\s*\S+\s*\Z|\s*\S+|\s+")
_WORDS = re.compile(r"\w+")


def answer_text(answer: Answer) -> str:
    text = answer.text if answer.json is None else to_json(answer.json)
    return text[: answer.cut_at]


def to_json(value: Json) -> str:
    return orjson.dumps(value).decode()


def completion(request: Request, reply: Answer | ToolUse) -> JsonObject:
    message, finish_reason = _message(reply)
    body = _envelope(request, "chat.completion")
    body["choices"] = [{"index": 0, "message": message, "finish_reason": finish_reason}]
    if not isinstance(reply, Answer) or reply.usage:
        body["usage"] = usage(request, reply)
    return body


def chunks(request: Request, reply: Answer | ToolUse) -> Iterator[JsonObject]:
    """Yield a streamed answer's chunks: role, one chunk per word, finish reason and, if requested, usage."""
    envelope = _envelope(request, "chat.completion.chunk")
    yield envelope | {"choices": [_piece({"role": "assistant", "content": ""})]}
    message, finish_reason = _message(reply)
    for text in _PIECES.findall(message.get("content") or ""):
        yield envelope | {"choices": [_piece({"content": text})]}
    for index, call in enumerate(message.get("tool_calls", ())):
        function = call["function"]
        begun = {**call, "index": index, "function": {**function, "arguments": ""}}
        yield envelope | {"choices": [_piece({"tool_calls": [begun]})]}
        for text in _PIECES.findall(function["arguments"]):
            more = {"index": index, "function": {"arguments": text}}
            yield envelope | {"choices": [_piece({"tool_calls": [more]})]}
    yield envelope | {"choices": [_piece({}, finish_reason)]}
    wanted: JsonObject = request.body.get("stream_options") or {}
    counted = not isinstance(reply, Answer) or reply.usage
    if counted and wanted.get("include_usage"):
        yield envelope | {"choices": [], "usage": usage(request, reply)}


def usage(request: Request, reply: Answer | ToolUse) -> JsonObject:
    """Return the token usage, counting each word as one token."""
    prompt = sum(len(str(message.get("content") or "").split()) for message in request.messages)
    text = answer_text(reply) if isinstance(reply, Answer) else to_json(reply.calls)
    words = len(text.split())
    return {"prompt_tokens": prompt, "completion_tokens": words, "total_tokens": prompt + words}


def failure(fail: Fail) -> JsonObject:
    return {"error": {"message": fail.message, "type": "scripted", "code": str(fail.status), "param": None}}


def model_list(models: tuple[str, ...]) -> JsonObject:
    return {
        "object": "list",
        "data": [{"id": name, "object": "model", "created": 0, "owned_by": "script"} for name in models],
    }


def embeddings(body: JsonObject, dimensions: int) -> JsonObject:
    """Embed the inputs, ignoring word order."""
    inputs: list[str] = (
        [body["input"]] if isinstance(body.get("input"), str) else list(body.get("input") or ())
    )
    vectors = [embed(str(text), int(body.get("dimensions") or dimensions)) for text in inputs]
    packed = body.get("encoding_format") == "base64"
    data = [
        {"object": "embedding", "index": index, "embedding": _packed(vector) if packed else vector}
        for index, vector in enumerate(vectors)
    ]
    words = sum(len(str(text).split()) for text in inputs)
    counted = {"prompt_tokens": words, "total_tokens": words}
    return {"object": "list", "model": body.get("model", ""), "data": data, "usage": counted}


def embed(text: str, dimensions: int) -> list[float]:
    """Return a vector of length 1 that hashes each word to a position and sign, or zeros if there are no words."""
    vector = [0.0] * dimensions
    for word in _WORDS.findall(text.lower()):
        digest = int.from_bytes(blake2b(word.encode(), digest_size=8).digest())
        vector[digest % dimensions] += 1.0 if digest >> 63 else -1.0
    length = sqrt(sum(value * value for value in vector))
    return [value / length for value in vector] if length else vector


def _packed(vector: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


def _envelope(request: Request, kind: str) -> JsonObject:
    return {"id": new_id("chatcmpl"), "object": kind, "created": int(time.time()), "model": request.model}


def _message(reply: Answer | ToolUse) -> tuple[JsonObject, str]:
    match reply:
        case Answer():
            return {"role": "assistant", "content": answer_text(reply)}, reply.finish_reason
        case ToolUse():
            calls = [
                {
                    "id": new_id("call"),
                    "type": "function",
                    "function": {
                        "name": name,
                        "arguments": arguments if isinstance(arguments, str) else to_json(arguments),
                    },
                }
                for name, arguments in reply.calls
            ]
            return {"role": "assistant", "content": None, "tool_calls": calls}, "tool_calls"


def _piece(delta: JsonObject, finish_reason: str | None = None) -> JsonObject:
    return {"index": 0, "delta": delta, "finish_reason": finish_reason}
