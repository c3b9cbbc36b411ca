"""The script of a model, its answer to each request: records, and their form in YAML.

Knows no HTTP. A rule's replies are given in order, the last one again and again.
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
    """One request as it came over the wire."""

    path: str
    body: JsonObject
    headers: Mapping[str, str]

    @property
    def prompt_id(self) -> str | None:
        """Return the prompt's ID, from the metadata or else the name of the output's schema."""
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
        """Read the data that Parley's prompts carry: the first user message, when it is a JSON object."""
        try:
            data = orjson.loads(self.user_messages[0])
        except (IndexError, orjson.JSONDecodeError):
            return {}
        return cast("JsonObject", data) if isinstance(data, dict) else {}

    @property
    def said(self) -> str:
        """Return the user's last message: the data's `utterance`, or else the last user message."""
        utterance = self.data.get("utterance")
        return utterance if isinstance(utterance, str) else "".join(self.user_messages[-1:])


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer: `json` is written as JSON, else `text` goes out as it is, malformed or not.

    `finish_reason="length"` makes it a truncated one; `cut_at` also cuts it, at that character.
    A streamed answer pauses `piece_delay_s` between pieces, and breaks off after `break_after` of them.
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
    """An answer that calls tools: pairs of a name and arguments; text goes out as it is."""

    calls: tuple[tuple[str, Json], ...]
    delay_s: float = 0.0
    piece_delay_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Fail:
    """An error response."""

    status: int
    retry_after_s: float | None = None
    message: str = "scripted failure"
    delay_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Hang:
    """No answer, until the caller or the server gives up."""


@dataclass(frozen=True, slots=True)
class Drop:
    """The response begins, and the connection breaks."""


@dataclass(frozen=True, slots=True)
class Raw:
    """A response with any body, for endpoints that speak something else."""

    body: str | bytes
    media_type: str = "application/json"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Computed:
    """A reply made from the request."""

    make: Callable[[Request], "Reply"]


Said: TypeAlias = Answer | ToolUse | Fail | Hang | Drop | Raw
Reply: TypeAlias = Said | Computed


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Replies to requests that meet every condition given.

    `prompt` and `model` are exact; `match` is a regular expression, searched in what the user said last.
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
    """The first rule that applies answers; `default` answers what no rule is for."""

    rules: tuple[Rule, ...] = ()
    default: Reply = field(default_factory=lambda: Fail(400, message="no rule of the script applies"))
    models: tuple[str, ...] = ("scripted",)
    embedding_dimensions: int = 64


class Playback:
    """A script and how far each rule has come."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self._given = [0] * len(script.rules)

    def next_reply(self, request: Request) -> Said:
        """Choose the reply to a request, and compute it when it is a computed one."""
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
    """Read a script from a YAML file; raises ConfigurationError with every mistake."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigurationError([Problem(str(path), str(error))]) from error
    return parse_script(document, place=path.name)


def parse_script(document: Json, *, place: str = "script") -> Script:
    """Parse a script's YAML: `default`, `rules` with `replies`, `models`."""
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
