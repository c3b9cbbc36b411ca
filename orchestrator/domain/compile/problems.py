"""Collect all problems of a domain folder in one run, each with its location.

Invalid parts of an entry are reported and dropped, so that the rest of the entry is still checked.
"""

import copy
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, Self, TypeVar

from jsonschema_rs import validator_for
from pydantic import BaseModel, ValidationError

from orchestrator.errors import Problem
from orchestrator.types import Json, JsonObject, is_list, is_object

Path = tuple[str | int, ...]
Model = TypeVar("Model", bound=BaseModel)

_KINDS = {
    "model_type": "a mapping",
    "dict_type": "a mapping",
    "mapping_type": "a mapping",
    "tuple_type": "a list",
    "list_type": "a list",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
}
_ROUNDS = 20
"""Maximum number of validate-and-prune rounds. Two or three are usually enough."""
_JSON_SCHEMA = validator_for({"$ref": "https://json-schema.org/draft/2020-12/schema"})


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file's content as plain data. `lines`: line numbers, from 1, by path of a key or list item."""

    name: str
    body: Json = None
    lines: Mapping[Path, int] = field(default_factory=dict[Path, int])

    def place(self, path: Path) -> str:
        line = self.line_of(path)
        where = f"{self.name}:{line}" if line else self.name
        return f"{where}: {'.'.join(str(step) for step in path)}" if path else where

    def line_of(self, path: Path) -> int | None:
        """Return the line number of the deepest part of the path that has one, or None."""
        for length in range(len(path), 0, -1):
            if (line := self.lines.get(path[:length])) is not None:
                return line
        return None


@dataclass(slots=True)
class Problems:
    """The problems found so far. Further problems with a value that is known to be invalid are not reported."""

    found: list[Problem] = field(default_factory=list[Problem])
    _broken: set[tuple[str, Path]] = field(default_factory=set[tuple[str, Path]])

    def add(self, file: SourceFile, path: Path, message: str) -> None:
        problem = Problem(file.place(path), message)
        if (file.name, path) not in self._broken and problem not in self.found:
            self.found.append(problem)

    def read(self, model: type[Model], file: SourceFile, body: Json, *, fallback: Json = None) -> Model:
        """Validate `body`, the content of `file`.

        Report invalid parts, and replace them with values from `fallback`, or remove them if `fallback` has no
        value for them.
        """
        empty: JsonObject = {}
        body = copy.deepcopy(empty if body is None else body)
        for _ in range(_ROUNDS):
            try:
                return model.model_validate(body)
            except ValidationError as error:
                mistakes = error.errors(include_url=False)
                for mistake in mistakes:
                    self.add(file, _clean(mistake["loc"]), _explain(model, mistake))
                self._broken.update((file.name, _clean(mistake["loc"])) for mistake in mistakes)
                body = _prune(body, [mistake["loc"] for mistake in mistakes], fallback)
        return model.model_validate(fallback or {})


@dataclass(frozen=True, slots=True)
class Place:
    """A part of a file, at `path`, whose problems are collected. Methods take the path of a smaller part."""

    problems: Problems
    file: SourceFile
    path: Path = ()

    def at(self, *path: str | int) -> Self:
        return replace(self, path=(*self.path, *path))

    def add(self, message: str, *path: str | int) -> None:
        self.problems.add(self.file, (*self.path, *path), message)

    def check_known(self, name: str, known: Iterable[str], kind: str, *path: str | int) -> bool:
        """Return whether `name` is in `known`. Report an unknown name as a problem."""
        names = list(known)
        if name in names:
            return True
        self.add(f"unknown {kind} {name!r}{suggest(name, names)}", *path)
        return False

    def check_schema(self, schema: JsonObject) -> bool:
        """Return whether `schema` is a valid JSON Schema for an object, and report a problem if it isn't."""
        if not _JSON_SCHEMA.is_valid(schema):
            # jsonschema is slow to import and run, but its messages are good
            from jsonschema import Draft202012Validator, SchemaError  # noqa: PLC0415

            try:
                Draft202012Validator.check_schema(schema)
            except SchemaError as error:
                self.add(f"is not a valid JSON Schema: {error.message}", *error.path)
                return False
        if schema.get("type") != "object":
            self.add("should be 'object'", "type")
            return False
        return True


def suggest(name: str, known: Iterable[str], *, nearness: float = 0.6) -> str:
    """Return ``; did you mean 'x'?``, or an empty string if no known name is similar.

    `nearness`: minimum similarity, from 0 to 1.
    """
    near = get_close_matches(str(name), [str(one) for one in known], n=1, cutoff=nearness)
    return f"; did you mean {near[0]!r}?" if near else ""


def _clean(location: Path) -> Path:
    return tuple(step for step in location if step != "[key]")


def _explain(model: type[BaseModel], mistake: Any) -> str:
    location = typing.cast("Path", mistake["loc"])
    if mistake["type"] == "extra_forbidden":
        key = str(location[-1])
        return f"unknown key{suggest(key, _keys_at(model, location[:-1]))}"
    if mistake["type"] == "missing":
        return "is missing"
    if (kind := _KINDS.get(mistake["type"])) is not None:
        return f"should be {kind} (it is {shorten(mistake['input'])})"
    message = str(mistake["msg"]).removeprefix("Value error, ").removeprefix("Input ")
    if mistake["type"] == "string_type" and isinstance(mistake["input"], int | float):
        return f"should be text; put it in quotes (it was read as {mistake['input']!r})"
    if (location and location[-1] == "[key]") or isinstance(mistake["input"], dict | list):
        return message
    return f"{message} (it is {shorten(mistake['input'])})"


def shorten(value: Json) -> str:
    """Return a value's representation for a message, cut to at most 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


def _keys_at(model: type[BaseModel], location: Path) -> list[str]:
    current: Any = model
    for step in location:
        fields = _fields_of(current)
        current = fields[str(step)].annotation if str(step) in fields else _member_of(current)
    return list(_fields_of(current))


def _fields_of(annotation: Any) -> dict[str, Any]:
    found = _models_in(annotation)
    return dict(found[0].model_fields) if found else {}


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and not isinstance(annotation, types.GenericAlias):
        return [annotation] if issubclass(annotation, BaseModel) else []
    if typing.get_origin(annotation) in {typing.Union, types.UnionType, typing.Annotated}:
        return [found for part in typing.get_args(annotation) for found in _models_in(part)]
    return []


def _member_of(annotation: Any) -> Any:
    if typing.get_origin(annotation) is typing.Annotated:
        return _member_of(typing.get_args(annotation)[0])
    arguments = [part for part in typing.get_args(annotation) if part is not Ellipsis]
    return arguments[-1] if arguments else annotation


def _prune(body: Json, locations: list[Path], fallback: Json) -> Json:
    """Remove or replace the invalid parts, starting with the last list items so that indices stay valid."""
    for location in sorted({_clean(location) for location in locations}, key=_order, reverse=True):
        if not location:
            replacement: Json = fallback or JsonObject()
            return copy.deepcopy(replacement)
        _remove(body, location, fallback)
    return body


def _order(location: Path) -> list[tuple[bool, int, str]]:
    return [(isinstance(step, int), step if isinstance(step, int) else 0, str(step)) for step in location]


def _remove(body: Json, location: Path, fallback: Json) -> None:
    """Remove the deepest existing part of `location`, or restore its value from `fallback`."""
    current: Any = body
    spare: Any = fallback
    deepest: tuple[Any, str | int, Json] | None = None
    for step in location:
        if not _has(current, step):
            break
        deepest = (current, step, spare)
        current = current[step]
        spare = spare[step] if _has(spare, step) else None
    if deepest is None:
        return
    holder, step, spare = deepest
    if _has(spare, step):
        holder[step] = copy.deepcopy(spare[step])
    else:
        del holder[step]


def _has(holder: Json, step: str | int) -> bool:
    if is_object(holder):
        return step in holder
    return is_list(holder) and isinstance(step, int) and step < len(holder)
