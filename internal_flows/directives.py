"""Directives: what a stage may return to change the course of its run (IF-3 … IF-7).

They are values, never exceptions, and are recognised in the plain JSON form in which they travel:
``{"_aipack_": {"kind": "Skip", "reason": "…"}}``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeAlias, TypeGuard

from orchestrator.errors import DirectiveError
from orchestrator.types import Json, JsonObject

TAG: Final = "_aipack_"

REDO_NOT_HERE: Final = "aip.flow.redo_run() can be returned only from # Before All or # After All stages."


class Stage(StrEnum):
    BEFORE_ALL = "before_all"
    DATA = "data"
    WORK = "work"
    OUTPUT = "output"
    AFTER_ALL = "after_all"


class NotGiven(StrEnum):
    """Tells an override that is absent from one that is null."""

    NOT_GIVEN = "not given"


NOT_GIVEN: Final = NotGiven.NOT_GIVEN


@dataclass(frozen=True, slots=True)
class Skip:
    """Skip the run (from `before_all`) or the item (from `data`, `output`)."""

    reason: str | None = None


@dataclass(frozen=True, slots=True)
class RedoRun:
    """Run the flow again, once this run has ended."""


@dataclass(frozen=True, slots=True)
class BeforeAllResponse:
    """Overrides of the whole run."""

    inputs: list[Json] | NotGiven = NOT_GIVEN
    options: JsonObject | NotGiven = NOT_GIVEN
    data: Json = None


@dataclass(frozen=True, slots=True)
class DataResponse:
    """Overrides of one item; without `data` the stage of work gets the input."""

    input: Json | NotGiven = NOT_GIVEN
    options: JsonObject | NotGiven = NOT_GIVEN
    data: Json | NotGiven = NOT_GIVEN


Directive: TypeAlias = Skip | RedoRun | BeforeAllResponse | DataResponse


def skip(reason: str | None = None) -> Skip:
    """Stop here and go on with the next."""
    return Skip(reason)


def redo_run() -> RedoRun:
    """Ask for another run after this one; only from `before_all` or `after_all`."""
    return RedoRun()


def before_all_response(
    *,
    inputs: list[Json] | NotGiven = NOT_GIVEN,
    options: JsonObject | NotGiven = NOT_GIVEN,
    data: Json = None,
) -> BeforeAllResponse:
    """Override the inputs or the options of the run; `data` is what later stages find in `run.data`."""
    return BeforeAllResponse(inputs, options, data)


def data_response(
    *,
    input: Json | NotGiven = NOT_GIVEN,  # noqa: A002  # the directive's own word
    options: JsonObject | NotGiven = NOT_GIVEN,
    data: Json | NotGiven = NOT_GIVEN,
) -> DataResponse:
    """Override the input or the options of this item; `data` is what `work` gets."""
    return DataResponse(input, options, data)


_NAMES: Final[Mapping[type[Directive], str]] = {
    Skip: "skip",
    RedoRun: "redo_run",
    BeforeAllResponse: "before_all_response",
    DataResponse: "data_response",
}

_PLACES: Final[Mapping[type[Directive], tuple[Stage, ...]]] = {
    Skip: (Stage.BEFORE_ALL, Stage.DATA, Stage.OUTPUT),
    RedoRun: (Stage.BEFORE_ALL, Stage.AFTER_ALL),
    BeforeAllResponse: (Stage.BEFORE_ALL,),
    DataResponse: (Stage.DATA,),
}


def _is_text_or_none(value: Json) -> bool:
    return value is None or isinstance(value, str)


def _is_anything(_: Json) -> bool:
    return True


def _is_list(value: Json) -> bool:
    return isinstance(value, list)


def _is_object(value: Json) -> TypeGuard[JsonObject]:
    return isinstance(value, dict)


@dataclass(frozen=True, slots=True)
class _Kind:
    """How a tagged table of this kind is read: its keys, and what each may hold."""

    make: Callable[..., Directive]
    name: str
    keys: Mapping[str, tuple[Callable[[Json], bool], str]]


_OPTIONS = (_is_object, "an object")
_KINDS: Final[Mapping[str, _Kind]] = {
    "Skip": _Kind(Skip, "skip", {"reason": (_is_text_or_none, "a text")}),
    "Redo": _Kind(RedoRun, "redo_run", {}),
    "BeforeAllResponse": _Kind(
        BeforeAllResponse,
        "before_all_response",
        {"inputs": (_is_list, "a list"), "options": _OPTIONS, "data": (_is_anything, "anything")},
    ),
    "DataResponse": _Kind(
        DataResponse,
        "data_response",
        {"input": (_is_anything, "anything"), "options": _OPTIONS, "data": (_is_anything, "anything")},
    ),
}


def to_json(directive: Directive) -> JsonObject:
    """The form in which a directive travels through a queue."""
    name = _NAMES[type(directive)]
    kind = next(kind for kind, known in _KINDS.items() if known.name == name)
    given = {key: getattr(directive, key) for key in _KINDS[kind].keys}
    kept = {key: value for key, value in given.items() if value is not NOT_GIVEN and value is not None}
    return {TAG: {"kind": kind, **kept}}


def recognise(value: Any, stage: Stage) -> Directive | None:
    """The directive that a stage returned, or None for an ordinary value.

    Raises:
        DirectiveError: the stage may not return this directive, or its table cannot be read.
    """
    if _is_object(value) and TAG in value:
        directive = _read_table(value, stage)
    elif isinstance(value, Skip | RedoRun | BeforeAllResponse | DataResponse):
        directive = value
        _check_members(directive, stage)
    else:
        return None
    _require_place(directive, stage)
    return directive


def _require_place(directive: Directive, stage: Stage) -> None:
    allowed = _PLACES[type(directive)]
    if stage in allowed:
        return
    name = _NAMES[type(directive)]
    if isinstance(directive, RedoRun):
        raise DirectiveError(REDO_NOT_HERE, stage=stage, directive=name)
    places = ", ".join(allowed)
    raise DirectiveError(
        f"{name}() was returned from {stage}; it can be returned only from {places}.",
        stage=stage,
        directive=name,
    )


def _read_table(value: JsonObject, stage: Stage) -> Directive:
    body, beside = value[TAG], sorted(str(key) for key in value if key != TAG)
    if beside:
        raise DirectiveError(
            f"A directive table was returned from {stage} with further keys beside {TAG}: "
            f"{', '.join(beside)}.",
            stage=stage,
            directive=TAG,
        )
    if not _is_object(body) or not isinstance(body.get("kind"), str):
        raise DirectiveError(
            f"A directive table was returned from {stage} without a kind; known are {', '.join(_KINDS)}.",
            stage=stage,
            directive=TAG,
        )
    kind = _KINDS.get(body["kind"])
    if kind is None:
        raise DirectiveError(
            f"A directive of the unknown kind {body['kind']!r} was returned from {stage}; "
            f"known are {', '.join(_KINDS)}.",
            stage=stage,
            directive=body["kind"],
        )
    members = {key: member for key, member in body.items() if key != "kind"}
    _check_keys(kind, members, stage)
    return kind.make(**members)


def _check_members(directive: Directive, stage: Stage) -> None:
    name = _NAMES[type(directive)]
    kind = next(known for known in _KINDS.values() if known.name == name)
    given = {key: getattr(directive, key) for key in kind.keys}
    _check_keys(kind, {key: value for key, value in given.items() if value is not NOT_GIVEN}, stage)


def _check_keys(kind: _Kind, members: JsonObject, stage: Stage) -> None:
    unknown = sorted(set(members) - set(kind.keys))
    if unknown:
        allowed = f"; it may have {', '.join(kind.keys)}" if kind.keys else "; it has none"
        raise DirectiveError(
            f"{kind.name}() was returned from {stage} with the unknown key {unknown[0]!r}{allowed}.",
            stage=stage,
            directive=kind.name,
        )
    for key, value in members.items():
        fits, wanted = kind.keys[key]
        if not fits(value):
            raise DirectiveError(
                f"{kind.name}() was returned from {stage} with {key!r} that is not {wanted}.",
                stage=stage,
                directive=kind.name,
            )
