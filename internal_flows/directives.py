"""Directives that a stage can return to change its run (IF-3 … IF-7).

Directives are values, never exceptions. Their JSON form is also accepted:
``{"_aipack_": {"kind": "Skip", "reason": "…"}}``.
"""

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
    """The type of NOT_GIVEN, which marks a missing override, as opposed to a null override."""

    NOT_GIVEN = "not given"


NOT_GIVEN: Final = NotGiven.NOT_GIVEN


@dataclass(frozen=True, slots=True)
class Skip:
    """A request to skip the run (from `before_all`) or the item (from `data` or `output`)."""

    reason: str | None = None


@dataclass(frozen=True, slots=True)
class RedoRun:
    """A request to rerun the flow after this run. Allowed only from `before_all` and `after_all`."""


@dataclass(frozen=True, slots=True)
class BeforeAllResponse:
    """Overrides for the whole run. `data`: the value of `run.data` in later stages."""

    inputs: list[Json] | NotGiven = NOT_GIVEN
    options: JsonObject | NotGiven = NOT_GIVEN
    data: Json = None


@dataclass(frozen=True, slots=True)
class DataResponse:
    """Overrides for one item. `data`: the argument of `work`. Default: the input."""

    input: Json | NotGiven = NOT_GIVEN
    options: JsonObject | NotGiven = NOT_GIVEN
    data: Json | NotGiven = NOT_GIVEN


Directive: TypeAlias = Skip | RedoRun | BeforeAllResponse | DataResponse


# Function-style names, with which flows return directives.
skip, redo_run = Skip, RedoRun
before_all_response, data_response = BeforeAllResponse, DataResponse


STAGES: Final[tuple[tuple[Stage, tuple[type[Directive], ...]], ...]] = (
    (Stage.BEFORE_ALL, (Skip, RedoRun, BeforeAllResponse)),  # once
    (Stage.DATA, (Skip, DataResponse)),  # per input, like the next two
    (Stage.WORK, ()),
    (Stage.OUTPUT, (Skip,)),
    (Stage.AFTER_ALL, (RedoRun,)),  # once
)
"""Stages in execution order, with their permitted directives (IF-1)."""


def _is_object(value: Json) -> TypeGuard[JsonObject]:
    return isinstance(value, dict)


_Check = tuple[Callable[[Json], bool], str]
_TEXT: _Check = (lambda value: value is None or isinstance(value, str), "a text")
_LIST: _Check = (lambda value: isinstance(value, list), "a list")
_OBJECT: _Check = (_is_object, "an object")
_ANYTHING: _Check = (lambda _: True, "anything")


@dataclass(frozen=True, slots=True)
class _Kind:
    """The format of a directive's JSON form."""

    tag: str
    make: type[Directive]
    name: str
    keys: Mapping[str, _Check]


_KINDS: Final = (
    _Kind("Skip", Skip, "skip", {"reason": _TEXT}),
    _Kind("Redo", RedoRun, "redo_run", {}),
    _Kind(
        "BeforeAllResponse",
        BeforeAllResponse,
        "before_all_response",
        {"inputs": _LIST, "options": _OBJECT, "data": _ANYTHING},
    ),
    _Kind(
        "DataResponse",
        DataResponse,
        "data_response",
        {"input": _ANYTHING, "options": _OBJECT, "data": _ANYTHING},
    ),
)
_BY_TAG: Final = {kind.tag: kind for kind in _KINDS}
_BY_TYPE: Final = {kind.make: kind for kind in _KINDS}


def recognize(value: Any, stage: Stage) -> Directive | None:
    """Return the directive that a stage returned, or None for an ordinary value.

    Raises:
        DirectiveError: the directive is malformed or not allowed in this stage.
    """
    if _is_object(value) and TAG in value:
        directive = _read_table(value, stage)
    elif isinstance(value, Skip | RedoRun | BeforeAllResponse | DataResponse):
        directive, kind = value, _BY_TYPE[type(value)]
        members = {key: getattr(directive, key) for key in kind.keys}
        _check_keys(kind, {key: one for key, one in members.items() if one is not NOT_GIVEN}, stage)
    else:
        return None
    _require_place(directive, stage)
    return directive


def _require_place(directive: Directive, stage: Stage) -> None:
    allowed = [place for place, directives in STAGES if type(directive) in directives]
    if stage in allowed:
        return
    name = _BY_TYPE[type(directive)].name
    message = f"{name}() was returned from {stage}; it can be returned only from {', '.join(allowed)}."
    if isinstance(directive, RedoRun):
        message = REDO_NOT_HERE
    raise DirectiveError(message, stage=stage, directive=name)


def _read_table(value: JsonObject, stage: Stage) -> Directive:
    body, beside = value[TAG], sorted(str(key) for key in value if key != TAG)
    if beside:
        problem = f"with keys other than {TAG}: {', '.join(beside)}."
        raise DirectiveError(
            f"A directive table was returned from {stage} {problem}", stage=stage, directive=TAG
        )
    if not _is_object(body) or not isinstance(body.get("kind"), str):
        raise DirectiveError(
            f"A directive table was returned from {stage} without a kind; known are {', '.join(_BY_TAG)}.",
            stage=stage,
            directive=TAG,
        )
    kind = _BY_TAG.get(body["kind"])
    if kind is None:
        raise DirectiveError(
            f"A directive of the unknown kind {body['kind']!r} was returned from {stage}; "
            f"known are {', '.join(_BY_TAG)}.",
            stage=stage,
            directive=body["kind"],
        )
    members = {key: member for key, member in body.items() if key != "kind"}
    _check_keys(kind, members, stage)
    return kind.make(**members)


def _check_keys(kind: _Kind, members: JsonObject, stage: Stage) -> None:
    """Raise a DirectiveError for the first unknown or invalid key."""
    problem = None
    unknown = sorted(set(members) - set(kind.keys))
    wrong = [key for key, value in members.items() if key in kind.keys and not kind.keys[key][0](value)]
    if unknown:
        allowed = f"; it can have {', '.join(kind.keys)}" if kind.keys else "; it has none"
        problem = f"with the unknown key {unknown[0]!r}{allowed}"
    elif wrong:
        problem = f"with {wrong[0]!r} that is not {kind.keys[wrong[0]][1]}"
    if problem is not None:
        raise DirectiveError(
            f"{kind.name}() was returned from {stage} {problem}.", stage=stage, directive=kind.name
        )
