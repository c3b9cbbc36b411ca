"""Schema-guided dialogues as files hold them: services, dialogues, turns, frames.

Reads what is there and ignores what it does not know; judging and learning are elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import orjson

from orchestrator.errors import InvalidInput

NO_INTENT = "NONE"


@dataclass(frozen=True, slots=True)
class SchemaSlot:
    name: str
    description: str
    categorical: bool
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SchemaIntent:
    """`slots`: required and optional ones."""

    name: str
    description: str
    slots: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Service:
    name: str
    description: str
    slots: dict[str, SchemaSlot]
    intents: dict[str, SchemaIntent]

    @property
    def tracked(self) -> list[SchemaSlot]:
        """The slots that some intent takes, which are those that a dialogue state can hold."""
        taken = {name for intent in self.intents.values() for name in intent.slots}
        return [slot for slot in self.slots.values() if slot.name in taken]


@dataclass(frozen=True, slots=True)
class Act:
    name: str
    slot: str = ""
    values: tuple[str, ...] = ()
    canonical: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Frame:
    """What was annotated for one service in one turn; `intent` and `state` are None without annotation."""

    service: str
    acts: tuple[Act, ...] = ()
    spans: tuple[tuple[int, int, str], ...] = ()
    intent: str | None = None
    state: dict[str, tuple[str, ...]] | None = None
    requested: tuple[str, ...] = ()
    results: tuple[dict[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Turn:
    user: bool
    text: str
    frames: tuple[Frame, ...] = ()

    def frame(self, service: str) -> Frame | None:
        return next((frame for frame in self.frames if frame.service == service), None)


@dataclass(frozen=True, slots=True)
class Dialogue:
    identifier: str
    services: tuple[str, ...]
    turns: tuple[Turn, ...] = field(default=())


def read_schema(path: Path) -> dict[str, Service]:
    """Read a schema file. Raises InvalidInput when it is none."""
    services = [_service(body) for body in _objects(_load(path, "schema"))]
    found = {service.name: service for service in services if service.name}
    if not found:
        raise InvalidInput(f"{path} names no services.", field="schema")
    return found


def read_dialogues(path: Path) -> list[Dialogue]:
    """Read dialogues: one JSON object a line, a JSON list, or every such file of a folder."""
    files = sorted(path.glob("dialogues*.json*")) if path.is_dir() else [path]
    dialogues = [dialogue for file in files for dialogue in _read_file(file)]
    if not dialogues:
        raise InvalidInput(f"{path} holds no dialogues.", field="dialogues")
    return dialogues


def _read_file(path: Path) -> Iterator[Dialogue]:
    content = _read(path, "dialogues")
    whole = _parse(content)
    bodies = _objects(whole) if isinstance(whole, list | dict) else _lines(content, path)
    for index, body in enumerate(bodies):
        yield _dialogue(body, f"{path.name}:{index}")


def _lines(content: bytes, path: Path) -> list[dict[str, Any]]:
    bodies: list[dict[str, Any]] = []
    for number, line in enumerate(content.splitlines(), 1):
        if line.strip():
            body = _parse(line)
            if not isinstance(body, dict):
                raise InvalidInput(f"{path}, line {number}: not a JSON object.", field="dialogues")
            bodies.append(cast("dict[str, Any]", body))
    return bodies


def _read(path: Path, what: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.", field=what) from error


def _load(path: Path, what: str) -> Any:
    body = _parse(_read(path, what))
    if body is None:
        raise InvalidInput(f"{path} is not JSON.", field=what)
    return body


def _parse(content: bytes) -> Any:
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        return None


def _objects(body: Any) -> list[dict[str, Any]]:
    if isinstance(body, dict):
        return [cast("dict[str, Any]", body)]
    return [item for item in body if isinstance(item, dict)] if isinstance(body, list) else []


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, list) else ()


def _text(body: dict[str, Any], name: str) -> str:
    value = body.get(name)
    return value if isinstance(value, str) else ""


def _service(body: dict[str, Any]) -> Service:
    slots = [
        SchemaSlot(
            _text(slot, "name"),
            _text(slot, "description"),
            bool(slot.get("is_categorical")),
            _texts(slot.get("possible_values")),
        )
        for slot in _objects(body.get("slots"))
    ]
    intents = [
        SchemaIntent(_text(intent, "name"), _text(intent, "description"), _intent_slots(intent))
        for intent in _objects(body.get("intents"))
    ]
    return Service(
        _text(body, "service_name"),
        _text(body, "description"),
        {slot.name: slot for slot in slots},
        {intent.name: intent for intent in intents},
    )


def _intent_slots(intent: dict[str, Any]) -> tuple[str, ...]:
    optional = intent.get("optional_slots")
    names = list(cast("dict[str, Any]", optional)) if isinstance(optional, dict) else list(_texts(optional))
    return tuple(dict.fromkeys((*_texts(intent.get("required_slots")), *names)))


def _dialogue(body: dict[str, Any], fallback: str) -> Dialogue:
    turns = tuple(_turn(turn) for turn in _objects(body.get("turns")))
    named = _texts(body.get("services"))
    services = named or tuple(dict.fromkeys(frame.service for turn in turns for frame in turn.frames))
    return Dialogue(_text(body, "dialogue_id") or fallback, services, turns)


def _turn(body: dict[str, Any]) -> Turn:
    text = _text(body, "utterance")
    frames = tuple(_frame(frame, len(text)) for frame in _objects(body.get("frames")))
    return Turn(_text(body, "speaker").upper() == "USER", text, frames)


def _frame(body: dict[str, Any], length: int) -> Frame:
    state = body.get("state")
    intent, values, requested = None, None, ()
    if isinstance(state, dict):
        held = cast("dict[str, Any]", state)
        intent = _text(held, "active_intent") or None
        requested = _texts(held.get("requested_slots"))
        raw = held.get("slot_values")
        values = {str(k): _texts(v) for k, v in raw.items() if _texts(v)} if isinstance(raw, dict) else {}
    acts = tuple(
        Act(
            _text(act, "act"),
            _text(act, "slot"),
            _texts(act.get("values")),
            _texts(act.get("canonical_values")),
        )
        for act in _objects(body.get("actions"))
    )
    results = tuple(
        {str(name): str(value) for name, value in row.items()}
        for row in _objects(body.get("service_results"))
    )
    return Frame(_text(body, "service"), acts, _spans(body, length), intent, values, requested, results)


def _spans(body: dict[str, Any], length: int) -> tuple[tuple[int, int, str], ...]:
    spans: list[tuple[int, int, str]] = []
    for slot in _objects(body.get("slots")):
        start, end = slot.get("start"), slot.get("exclusive_end")
        if isinstance(start, int) and isinstance(end, int) and 0 <= start < end <= length:
            spans.append((start, end, _text(slot, "slot")))
    return tuple(spans)
