"""Directives that a stage can return to change its run (IF-3 … IF-7).

Directives are values, never exceptions. Their JSON form is also accepted:
``{"_aipack_": {"kind": "Skip", "reason": "…"}}``.
"""

from enum import StrEnum
from typing import Any, Final, TypeAlias

from pydantic import ConfigDict, ValidationError
from pydantic.dataclasses import dataclass

from orchestrator.errors import DirectiveError
from orchestrator.types import Json, JsonObject, is_object

TAG: Final = "_aipack_"

REDO_NOT_HERE: Final = "redo_run() can be returned only from before_all or after_all."


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


_STRICT = ConfigDict(extra="forbid", strict=True)


@dataclass(frozen=True, slots=True, config=_STRICT)
class Skip:
    """A request to skip the run (from `before_all`) or the item (from `data` or `output`)."""

    reason: str | None = None


@dataclass(frozen=True, slots=True, config=_STRICT)
class RedoRun:
    """A request to rerun the flow after this run. Allowed only from `before_all` and `after_all`."""


@dataclass(frozen=True, slots=True, config=_STRICT)
class BeforeAllResponse:
    """Overrides for the whole run. `data`: the value of `run.data` in later stages.

    `inputs` and `options` are unchanged if they are not given.
    """

    inputs: list[Json] | NotGiven = NOT_GIVEN
    options: JsonObject | NotGiven = NOT_GIVEN
    data: Json = None


@dataclass(frozen=True, slots=True, config=_STRICT)
class DataResponse:
    """Overrides for one item. `data`: passed to `work` and `output`. Default: the item's input.

    `input` and `options` are unchanged if they are not given.
    """

    input: Json | NotGiven = NOT_GIVEN
    options: JsonObject | NotGiven = NOT_GIVEN
    data: Json | NotGiven = NOT_GIVEN


Directive: TypeAlias = Skip | RedoRun | BeforeAllResponse | DataResponse


# Function-style names for the directives that flows return.
skip, redo_run = Skip, RedoRun
before_all_response, data_response = BeforeAllResponse, DataResponse


STAGES: Final[tuple[tuple[Stage, tuple[type[Directive], ...]], ...]] = (
    (Stage.BEFORE_ALL, (Skip, RedoRun, BeforeAllResponse)),  # once
    (Stage.DATA, (Skip, DataResponse)),  # once per input, like the next two
    (Stage.WORK, ()),
    (Stage.OUTPUT, (Skip,)),
    (Stage.AFTER_ALL, (RedoRun,)),  # once
)
"""Stages in execution order, with their permitted directives (IF-1)."""


_KINDS: Final[dict[str, type[Directive]]] = {
    "Skip": Skip,
    "Redo": RedoRun,
    "BeforeAllResponse": BeforeAllResponse,
    "DataResponse": DataResponse,
}
_NAMES: Final[dict[type[Directive], str]] = {
    Skip: "skip",
    RedoRun: "redo_run",
    BeforeAllResponse: "before_all_response",
    DataResponse: "data_response",
}


def recognize(value: Any, stage: Stage) -> Directive | None:
    """Return the directive that a stage returned, or None for an ordinary value.

    Raises:
        DirectiveError: the directive is malformed or not allowed in this stage.
    """
    if is_object(value) and TAG in value:
        directive = _read_table(value, stage)
    elif isinstance(value, Skip | RedoRun | BeforeAllResponse | DataResponse):
        directive = value
    else:
        return None
    allowed = [place for place, directives in STAGES if type(directive) in directives]
    if stage in allowed:
        return directive
    name = _NAMES[type(directive)]
    message = f"{name}() was returned from {stage}; it can be returned only from {', '.join(allowed)}."
    if isinstance(directive, RedoRun):
        message = REDO_NOT_HERE
    raise DirectiveError(message, stage=stage, directive=name)


def _read_table(value: JsonObject, stage: Stage) -> Directive:
    body, beside = value[TAG], sorted(str(key) for key in value if key != TAG)
    kind = body.get("kind") if is_object(body) else None
    problem, name = None, TAG
    if beside:
        problem = f"with keys other than {TAG}: {', '.join(beside)}"
    elif not isinstance(kind, str) or kind not in _KINDS:
        problem = f"with the kind {kind!r}; known kinds are {', '.join(_KINDS)}"
    else:
        name = f"{_NAMES[_KINDS[kind]]}()"
        try:
            return _KINDS[kind](**{key: member for key, member in body.items() if key != "kind"})
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            problem = f"with an invalid {first['loc'][0]!r}: {first['msg']}"
    raise DirectiveError(f"{name} was returned from {stage} {problem}.", stage=stage, directive=name)
