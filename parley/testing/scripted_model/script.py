"""Scripts of model replies, and their YAML format.

A rule returns its replies in order, and then repeats the last reply.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, cast

import orjson
import yaml
from jsonschema import Draft202012Validator

from orchestrator.errors import ConfigurationError, Problem
from orchestrator.types import Json, JsonObject


@dataclass(frozen=True, slots=True)
class Request:
    path: str
    body: JsonObject
    headers: Mapping[str, str]

    @property
    def prompt_id(self) -> str | None:
        """The prompt ID from the metadata, or the name of the output schema, or None if both are missing."""
        response_format: JsonObject = self.body.get("response_format") or {}
        schema: JsonObject = response_format.get("json_schema") or {}
        return self.metadata.get("prompt_id") or schema.get("name")

    @property
    def metadata(self) -> JsonObject:
        return self.body.get("metadata") or {}

    @property
    def model(self) -> str:
        return str(self.body.get("model", ""))

    @property
    def messages(self) -> list[JsonObject]:
        return self.body.get("messages") or []

    @property
    def user_messages(self) -> list[str]:
        return [str(message.get("content")) for message in self.messages if message.get("role") == "user"]

    @property
    def data(self) -> JsonObject:
        """The data of a Parley prompt: the first user message, or an empty object if it isn't a JSON object."""
        try:
            data = orjson.loads(self.user_messages[0])
        except (IndexError, orjson.JSONDecodeError):
            return {}
        return cast("JsonObject", data) if isinstance(data, dict) else {}

    @property
    def said(self) -> str:
        """The data's `utterance`, or the last user message if there is no `utterance`. Empty if both are missing."""
        utterance = self.data.get("utterance")
        return utterance if isinstance(utterance, str) else "".join(self.user_messages[-1:])


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A chat answer. Its text is `text` or, if `json` is not None, that value as JSON.

    Args:
        finish_reason: ``length`` for a truncated answer.
        cut_at: maximum number of characters to send.
        delay_s: delay of the answer, in seconds.
        piece_delay_s: delay between the parts of a streamed answer, in seconds.
        break_after: number of parts to send before a streamed answer breaks off.
        usage: True to report token counts.
    """

    text: str = ""
    json: Json = None
    finish_reason: str = "stop"
    cut_at: int | None = None
    delay_s: float = 0.0
    piece_delay_s: float = 0.0
    break_after: int | None = None
    usage: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """An answer with tool calls, as pairs of name and arguments. Arguments given as text are sent unchanged."""

    calls: tuple[tuple[str, Json], ...]
    delay_s: float = 0.0
    piece_delay_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Fail:
    status: int
    retry_after_s: float | None = None
    message: str = "scripted failure"
    delay_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Hang:
    """A reply that never arrives. The connection stays open until the client or the server closes it."""


@dataclass(frozen=True, slots=True)
class Drop:
    """A response that breaks off after its start."""


@dataclass(frozen=True, slots=True)
class Raw:
    body: str | bytes
    media_type: str = "application/json"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Computed:
    make: Callable[[Request], "Reply"]


Said: TypeAlias = Answer | ToolUse | Fail | Hang | Drop | Raw
Reply: TypeAlias = Said | Computed


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Replies to all requests that match the given conditions.

    `prompt`, `model`: if given, must equal the request's prompt ID and model. `match`: a regular expression to find in
    the user's message.
    """

    replies: tuple[Reply, ...]
    prompt: str | None = None
    model: str | None = None
    match: str | None = None

    def applies(self, request: Request) -> bool:
        return (
            self.prompt in {None, request.prompt_id}
            and self.model in {None, request.model}
            and (self.match is None or re.search(self.match, request.said) is not None)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """Rules for answering requests. The first matching rule answers, or `default` if no rule matches.

    `models`: IDs of the models that the server lists.
    """

    rules: tuple[Rule, ...] = ()
    default: Reply = field(default_factory=lambda: Fail(400, message="no rule in the script applies"))
    models: tuple[str, ...] = ("scripted",)
    embedding_dimensions: int = 64


class Playback:
    """A script, and the current position in each rule's replies."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self._given = [0] * len(script.rules)

    def next_reply(self, request: Request) -> Said:
        reply = self._chosen(request)
        while isinstance(reply, Computed):
            reply = reply.make(request)
        return reply

    def _chosen(self, request: Request) -> Reply:
        for number, rule in enumerate(self.script.rules):
            if rule.applies(request):
                at = min(self._given[number], len(rule.replies) - 1)
                self._given[number] += 1
                return rule.replies[at]
        return self.script.default


_SECONDS = {"type": "number", "minimum": 0}
_REPLY_FORMS: dict[str, JsonObject] = {
    "text": {
        "text": {"type": "string"},
        "finish_reason": {"type": "string"},
        "cut_at": {"type": "integer", "minimum": 0},
        "delay_s": _SECONDS,
        "piece_delay_s": _SECONDS,
        "break_after": {"type": "integer", "minimum": 0},
        "usage": {"type": "boolean"},
    },
    "tool_calls": {
        "tool_calls": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}, "arguments": {}},
                "additionalProperties": False,
            },
        },
        "delay_s": _SECONDS,
        "piece_delay_s": _SECONDS,
    },
    "status": {
        "status": {"type": "integer", "minimum": 400, "maximum": 599},
        "retry_after_s": _SECONDS,
        "message": {"type": "string"},
        "delay_s": _SECONDS,
    },
    "hang": {"hang": {"const": True}},
    "drop": {"drop": {"const": True}},
    "body": {"body": {"type": "string"}, "media_type": {"type": "string"}},
}
_REPLY_FORMS["json"] = {key: form for key, form in _REPLY_FORMS["text"].items() if key != "text"} | {
    "json": {}
}
_REPLY: JsonObject = {
    "oneOf": [
        {"type": "object", "required": [name], "properties": form, "additionalProperties": False}
        for name, form in _REPLY_FORMS.items()
    ]
}
_SCRIPT: Any = Draft202012Validator(
    {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "models": {"type": "array", "items": {"type": "string"}, "minItems": 1},
            "embedding_dimensions": {"type": "integer", "minimum": 1},
            "default": _REPLY,
            "rules": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["replies"],
                    "additionalProperties": False,
                    "properties": {
                        "prompt": {"type": "string"},
                        "model": {"type": "string"},
                        "match": {"type": "string", "format": "regex"},
                        "replies": {"type": "array", "items": _REPLY, "minItems": 1},
                    },
                },
            },
        },
    },
    format_checker=Draft202012Validator.FORMAT_CHECKER,
)


def load_script(path: Path) -> Script:
    """Read a script from a YAML file. Raises ConfigurationError with all problems."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigurationError([Problem(str(path), str(error))]) from error
    return parse_script(document, place=path.name)


def parse_script(document: Json, *, place: str = "script") -> Script:
    """Parse a script with `default`, `models`, and `rules` that contain `replies`. `place`: name for error messages.

    Raises ConfigurationError with all problems.
    """
    problems = [
        Problem(f"{place}: {error.json_path}", error.message) for error in _SCRIPT.iter_errors(document)
    ]
    if problems:
        raise ConfigurationError(problems)
    settings: JsonObject = {key: document[key] for key in ("embedding_dimensions",) if key in document}
    if "default" in document:
        settings["default"] = _reply(document["default"])
    if "models" in document:
        settings["models"] = tuple(document["models"])
    return Script(rules=tuple(_rule(rule) for rule in document.get("rules", ())), **settings)


def _rule(form: JsonObject) -> Rule:
    replies = tuple(_reply(reply) for reply in form["replies"])
    return Rule(replies=replies, prompt=form.get("prompt"), model=form.get("model"), match=form.get("match"))


def _reply(form: JsonObject) -> Reply:
    if "status" in form:
        return Fail(**form)
    if "hang" in form:
        return Hang()
    if "drop" in form:
        return Drop()
    if "body" in form:
        return Raw(**form)
    if "tool_calls" in form:
        calls = tuple((call["name"], call.get("arguments", {})) for call in form["tool_calls"])
        delays = {key: form[key] for key in ("delay_s", "piece_delay_s") if key in form}
        return ToolUse(calls=calls, **delays)
    return Answer(**form)
