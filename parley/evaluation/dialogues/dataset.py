"""Schema-guided dialogues as files hold them: services, dialogues, turns, frames.

Reads what is there and ignores what it does not know; scoring and learning are elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import orjson
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo

from orchestrator.errors import InvalidInput

NO_INTENT = "NONE"


def _objects(value: Any) -> list[dict[str, Any]]:
    items = value if isinstance(value, list) else [value]
    return [item for item in items if isinstance(item, dict)]


def _by_name(value: Any) -> dict[str, dict[str, Any]]:
    return {str(item.get("name", "")): item for item in _objects(value)}


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list | tuple | dict) else ()


def _slot_values(value: Any) -> dict[str, tuple[str, ...]]:
    values = value.items() if isinstance(value, dict) else ()
    return {str(slot): _texts(texts) for slot, texts in values if _texts(texts)}


def _rows(value: Any) -> tuple[dict[str, str], ...]:
    return tuple({str(name): str(cell) for name, cell in row.items()} for row in _objects(value))


def _defaults(value: Any) -> dict[str, str]:
    items = value.items() if isinstance(value, dict) else ()
    return {str(name): str(cell) for name, cell in items}


def _spans(value: Any) -> tuple[tuple[int, int, str], ...]:
    places = (
        (slot.get("start"), slot.get("exclusive_end"), slot.get("slot", "")) for slot in _objects(value)
    )
    return tuple(
        (start, end, str(slot))
        for start, end, slot in places
        if isinstance(start, int) and isinstance(end, int) and 0 <= start < end
    )


def _words(name: str) -> set[str]:
    return {word.lower().removesuffix("s") for word in re.findall(r"[A-Z]?[a-z]+", name)}


Text = Annotated[str, BeforeValidator(lambda value: value if isinstance(value, str) else "")]
Texts = Annotated[tuple[str, ...], BeforeValidator(_texts)]
Flag = Annotated[bool, BeforeValidator(bool)]
Objects = BeforeValidator(_objects)


class _Record(BaseModel):
    """A JSON object; a member that is missing or of another type has its default."""

    model_config = ConfigDict(frozen=True)


class SchemaSlot(_Record):
    name: Text = ""
    description: Text = ""
    categorical: Flag = Field(default=False, validation_alias="is_categorical")
    values: Texts = Field(default=(), validation_alias="possible_values")


class SchemaIntent(_Record):
    name: Text = ""
    description: Text = ""
    required_slots: Texts = ()
    optional_slots: Texts = ()
    defaults: Annotated[dict[str, str], BeforeValidator(_defaults)] = Field(
        default={}, validation_alias="optional_slots"
    )
    result_slots: Texts = ()
    is_transactional: Flag = False

    @property
    def slots(self) -> tuple[str, ...]:
        """What it takes."""
        return (*self.required_slots, *self.optional_slots)


class Service(_Record):
    name: Text = Field(default="", validation_alias="service_name")
    description: Text = ""
    slots: Annotated[dict[str, SchemaSlot], BeforeValidator(_by_name)] = {}
    intents: Annotated[dict[str, SchemaIntent], BeforeValidator(_by_name)] = {}

    @cached_property
    def tracked(self) -> list[SchemaSlot]:
        """The slots that some intent takes, which are those that a dialogue state can hold."""
        taken = {name for one in self.intents.values() for name in one.slots}
        return [slot for slot in self.slots.values() if slot.name in taken]

    @cached_property
    def telling_words(self) -> dict[str, set[str]]:
        """By intent, the words of its name that no other intent of the service has."""
        words = {name: _words(name) for name in self.intents}
        return {
            name: own.difference(*(words[other] for other in words if other != name))
            for name, own in words.items()
        }


class Act(_Record):
    """What was done in saying something. `canonical`: its values as the services write them."""

    name: Text = Field(default="", validation_alias="act")
    slot: Text = ""
    values: Texts = ()
    canonical: Texts = Field(default=(), validation_alias="canonical_values")


class State(_Record):
    """The annotated state after a user's turn: what is wanted, known and asked."""

    active_intent: Text = ""
    slot_values: Annotated[dict[str, tuple[str, ...]], BeforeValidator(_slot_values)] = {}
    requested_slots: Texts = ()


class ServiceCall(_Record):
    """A call that the dialogue's assistant made."""

    method: Text = ""
    parameters: Annotated[dict[str, str], BeforeValidator(_defaults)] = {}


def _call(value: Any) -> ServiceCall | None:
    return ServiceCall.model_validate(value) if isinstance(value, dict) else None


class Frame(_Record):
    """The annotation of one service in one turn; `spans`: start, end and slot."""

    service: Text = ""
    acts: Annotated[tuple[Act, ...], Objects] = Field(default=(), validation_alias="actions")
    spans: Annotated[tuple[tuple[int, int, str], ...], BeforeValidator(_spans)] = Field(
        default=(), validation_alias="slots"
    )
    state: Annotated[
        State | None, BeforeValidator(lambda value: value if isinstance(value, dict) else None)
    ] = None
    results: Annotated[tuple[dict[str, str], ...], BeforeValidator(_rows)] = Field(
        default=(), validation_alias="service_results"
    )
    call: Annotated[ServiceCall | None, BeforeValidator(_call)] = Field(
        default=None, validation_alias="service_call"
    )


def _within_text(frames: tuple[Frame, ...], info: ValidationInfo) -> tuple[Frame, ...]:
    length = len(info.data["text"])
    return tuple(
        frame.model_copy(update={"spans": tuple(span for span in frame.spans if span[1] <= length)})
        for frame in frames
    )


class Turn(_Record):
    speaker: Text = ""
    text: Text = Field(default="", validation_alias="utterance")
    frames: Annotated[tuple[Frame, ...], Objects, AfterValidator(_within_text)] = ()

    @property
    def user(self) -> bool:
        return self.speaker.upper() == "USER"

    def frame(self, service: str) -> Frame | None:
        return next((frame for frame in self.frames if frame.service == service), None)


class Dialogue(_Record):
    identifier: Text = Field(default="", validation_alias="dialogue_id")
    services: Texts = ()
    turns: Annotated[tuple[Turn, ...], Objects] = ()


def read_schema(path: Path) -> dict[str, Service]:
    """Read a schema file. Raises InvalidInput when it is none."""
    body = _parse(_read(path, "schema"))
    if body is None:
        raise InvalidInput(f"{path} is not JSON.", field="schema")
    services = map(Service.model_validate, _objects(body))
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
    bodies = _lines(content, path) if whole is None else _objects(whole)
    for index, body in enumerate(bodies):
        read = Dialogue.model_validate(body)
        annotated = dict.fromkeys(frame.service for turn in read.turns for frame in turn.frames)
        identifier = read.identifier or f"{path.name}:{index}"
        yield read.model_copy(
            update={"identifier": identifier, "services": read.services or tuple(annotated)}
        )


def _lines(content: bytes, path: Path) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(content.splitlines(), 1):
        if line.strip():
            body = _parse(line)
            if not isinstance(body, dict):
                raise InvalidInput(f"{path}, line {number}: not a JSON object.", field="dialogues")
            yield body


def _read(path: Path, what: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.", field=what) from error


def _parse(content: bytes) -> Any:
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        return None
