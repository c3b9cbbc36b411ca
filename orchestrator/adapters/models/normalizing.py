"""Normalize the responses of endpoints that claim compatibility with the chat-completions API.

The result always has the API's types. Values that the API doesn't define are dropped.
"""

import json
import re
from collections.abc import Mapping
from typing import cast
from uuid import uuid4

from orchestrator.adapters.models.thoughts import ThoughtFilter, cut_thought
from orchestrator.types import Json, JsonObject, is_list, is_object

_THOUGHT_FIELDS = ("reasoning_content", "reasoning")
_WRITTEN_CALL = re.compile(r"<tool_call>\s*(\{.*?\})\s*</tool_call>", re.DOTALL)
_DETAILS = {
    "prompt_tokens_details": ("cached_tokens",),
    "completion_tokens_details": ("reasoning_tokens",),
}
_ENDINGS = {
    **{name: name for name in ("stop", "length", "tool_calls", "content_filter", "function_call")},
    **dict.fromkeys(("max_tokens", "model_length"), "length"),
    **dict.fromkeys(("safety", "guardrail_intervened"), "content_filter"),
}


def normalize_completion(body: Json) -> JsonObject:
    """Return a normalized completion with the first choice. Raises ValueError if the body has no choices."""
    body = _object(body)
    choices = _objects(body.get("choices"))
    if not choices:
        raise ValueError("no choices")
    return _envelope(body, "chat.completion") | {"choices": [_choice(choices[0])]}


def _choice(choice: JsonObject) -> JsonObject:
    message = _object(choice.get("message") or choice.get("delta"))
    if not message:
        raise ValueError("no message")
    text = cut_thought(_text(message.get("content")) or "")
    written = _written_calls(text)
    calls = _calls(_listed_calls(message) or written)
    if not calls and not text.strip():
        text = _misplaced_object(message)
    return {
        "index": 0,
        "finish_reason": _ending(choice.get("finish_reason")) or "stop",
        "message": {
            "role": "assistant",
            "content": (_WRITTEN_CALL.sub("", text) if written else text) or None,
            "refusal": _name(message.get("refusal")),
            "tool_calls": calls or None,
            **_thoughts(message),
        },
    }


def _listed_calls(message: JsonObject) -> list[JsonObject]:
    legacy = message.get("function_call")
    listed = _objects(message.get("tool_calls"))
    return listed or ([{"function": legacy}] if isinstance(legacy, dict) else [])


def _written_calls(text: str) -> list[JsonObject]:
    """Return the tool calls in a text's `<tool_call>` elements.

    Servers without a tool-call parser leave these elements in the text.
    """
    found = (_read_object(match[1]) for match in _WRITTEN_CALL.finditer(text))
    return [{"function": call} for call in found if call is not None]


def _misplaced_object(message: JsonObject) -> str:
    """Return the first thought that is a JSON object, as text, or an empty string.

    Some servers send the answer as a thought.
    """
    thoughts = (message[name].strip() for name in _thoughts(message))
    return next((thought for thought in thoughts if _read_object(thought) is not None), "")


def _read_object(text: str) -> JsonObject | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if is_object(value) else None


def _calls(listed: list[JsonObject]) -> list[JsonObject]:
    calls: list[JsonObject] = []
    for listed_call in listed:
        function = _object(listed_call.get("function"))
        if name := _name(function.get("name")):
            known = {call["id"] for call in calls}
            given = _name(listed_call.get("id"))
            call: JsonObject = {
                "id": given if given and given not in known else new_call_id(),
                "type": "function",
                "function": {"name": name, "arguments": _arguments(function.get("arguments")) or "{}"},
            }
            calls.append(call | _signature(listed_call))
    return calls


class ChunkNormalizer:
    """A normalizer for the chunks of one streamed answer. Numbers the tool calls consecutively."""

    def __init__(self) -> None:
        self._places: list[_Call] = []
        self._thought = ThoughtFilter()

    @property
    def misread(self) -> bool:
        """Return whether forwarded text turned out to be a thought."""
        return self._thought.misread

    def normalize(self, chunk: Json) -> JsonObject:
        """Return a normalized chunk with at most one choice."""
        chunk = _object(chunk)
        choices = [self._choice(choice) for choice in _objects(chunk.get("choices"))[:1]]
        return _envelope(chunk, "chat.completion.chunk") | {"choices": choices}

    def end(self) -> JsonObject | None:
        """Return a last chunk with the buffered content, or None if the buffer is empty."""
        rest = self._thought.end()
        return (
            self.normalize({"choices": [{"delta": {"content": rest}, "finish_reason": "stop"}]})
            if rest
            else None
        )

    def _choice(self, choice: JsonObject) -> JsonObject:
        delta = _object(choice.get("delta") or choice.get("message"))
        ending = _ending(choice.get("finish_reason"))
        text = self._thought.feed(_text(delta.get("content")) or "")
        if ending:
            text += self._thought.end()
        return {
            "index": 0,
            "finish_reason": ending,
            "delta": {
                "content": text or None,
                "refusal": _name(delta.get("refusal")),
                "tool_calls": [
                    piece for one in _listed_calls(delta) if (piece := self._piece(one)) is not None
                ]
                or None,
                **_thoughts(delta),
            },
        }

    def _piece(self, piece: JsonObject) -> JsonObject | None:
        """Return a normalized part of a call, or None while the call has no name."""
        function = _object(piece.get("function"))
        given, name = _name(piece.get("id")), _name(function.get("name"))
        arguments = _arguments(function.get("arguments"))
        place = self._place(piece.get("index"), given, name, arguments)
        call = self._places[place]
        call.arguments += arguments
        call.name = call.name or name
        if call.name is None:
            return None
        first = not call.announced
        call.announced = True
        return {
            "index": place,
            "id": (call.given or new_call_id()) if first else None,
            "type": "function",
            "function": {
                "name": call.name if first else None,
                "arguments": call.arguments if first else arguments,
            },
        } | _signature(piece)

    def _place(self, index: Json, given: str | None, name: str | None, arguments: str) -> int:
        """Return the index in `_places` of the call that a part belongs to, which may be new.

        A part begins a new call if its index is new, its ID differs, or it has a name after complete arguments.
        """
        known = [at for at, call in enumerate(self._places) if call.index == index]
        if known:
            call = self._places[known[-1]]
            named_again = bool(name) and call.is_whole and bool(arguments or name != call.name)
            begins = given != call.given if given and call.given else named_again
            if not begins:
                call.given = call.given or given
                return known[-1]
            for at in known:
                if given and self._places[at].given == given:
                    return at
        self._places.append(_Call(index, given))
        return len(self._places) - 1


class _Call:
    """A tool call whose parts are still arriving."""

    def __init__(self, index: Json, given: str | None) -> None:
        self.index = index
        self.given = given
        self.name: str | None = None
        self.arguments = ""
        self.announced = False

    @property
    def is_whole(self) -> bool:
        return _read_object(self.arguments) is not None


def new_call_id() -> str:
    return f"call_{uuid4().hex[:24]}"


def _envelope(body: JsonObject, kind: str) -> JsonObject:
    created = body.get("created")
    return {
        "id": _name(body.get("id")) or "",
        "object": kind,
        "created": created if _is_count(created) else 0,
        "model": _name(body.get("model")) or "",
        "usage": _usage(body.get("usage")),
    }


def _usage(usage: Json) -> JsonObject | None:
    usage = _object(usage)
    prompt, completion = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if not _is_count(prompt) or not _is_count(completion):
        return None
    details = {
        name: {key: value for key in keys if _is_count(value := _object(usage.get(name)).get(key))}
        for name, keys in _DETAILS.items()
    }
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        **{name: known for name, known in details.items() if known},
    }


def _ending(reason: Json) -> str | None:
    """Return the API's finish reason, or None if the answer continues. Unknown reasons become `stop`."""
    name = _name(reason)
    return None if name is None else _ENDINGS.get(name, "stop")


def _is_count(value: Json) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _object(value: Json) -> JsonObject:
    return value if is_object(value) else {}


def _objects(value: Json) -> list[JsonObject]:
    return [one for one in value if is_object(one)] if is_list(value) else []


def _name(value: Json) -> str | None:
    return value if isinstance(value, str) and value else None


def _text(content: Json) -> str | None:
    """Return content as text: a string as it is, a list's text parts joined, an object as JSON.

    Return None for None. Raises ValueError for other content.
    """
    match content:
        case str():
            return content.replace("\0", "")
        case list():
            parts = cast("list[Json]", content)
            said = [part if isinstance(part, str) else _part_text(part) for part in parts]
            return "".join(said).replace("\0", "")
        case dict():
            return json.dumps(content, ensure_ascii=False)
        case None:
            return None
        case _:
            raise ValueError("content is not text")


def _part_text(part: Json) -> str:
    part = _object(part)
    return (
        part["text"]
        if part.get("type") in {None, "text", "output_text"} and isinstance(part.get("text"), str)
        else ""
    )


def _arguments(arguments: Json) -> str:
    if arguments is None:
        return ""
    return (
        arguments.replace("\0", "")
        if isinstance(arguments, str)
        else json.dumps(arguments, ensure_ascii=False)
    )


def _thoughts(message: JsonObject) -> JsonObject:
    return {
        name: message[name]
        for name in _THOUGHT_FIELDS
        if isinstance(message.get(name), str) and message[name]
    }


def _signature(call: Mapping[str, Json]) -> JsonObject:
    """Return the member with the provider's signature for a call, or an empty object if there is none.

    Later requests must repeat the signature unchanged.
    """
    return {"extra_content": call["extra_content"]} if call.get("extra_content") else {}
