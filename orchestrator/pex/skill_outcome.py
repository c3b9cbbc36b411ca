"""The outcomes of a skill, and the `finish` tool whose schema enforces them (PX-6)."""

from dataclasses import dataclass
from typing import TypeAlias

from orchestrator.domain.model import SkillSpec
from orchestrator.domain.portable import simplify
from orchestrator.errors import FailureCategory
from orchestrator.models.structured import Shape, ToolsAnswer, read_json
from orchestrator.pex.execution import Failed, NeedsInput, Parked
from orchestrator.ports.language_model import ToolDefinition
from orchestrator.saying import Told
from orchestrator.types import JsonObject, is_object

FINISH = "finish"
MOST_ENTRIES = 5
LONGEST = 500
"""Maximum length of a message or an entry, in characters."""


@dataclass(frozen=True, slots=True)
class Success:
    """The outcome of a skill with a result. `warning`: why the result is incomplete, or None."""

    data: JsonObject
    entries: tuple[str, ...] = ()
    warning: Told | None = None


Interrupted: TypeAlias = NeedsInput | Parked
"""The outcome of a skill that stops because a call needs the user, an approval or a late result."""

SkillOutcome: TypeAlias = Success | Failed | Interrupted


def name_outcome(outcome: SkillOutcome) -> str:
    match outcome:
        case Success(warning=None):
            return "success"
        case Success():
            return "failure"
        case Failed():
            return "uncertain" if outcome.uncertain else "failure"
        case NeedsInput() | Parked():
            return "interrupted"


def define_finish(skill: SkillSpec) -> ToolDefinition:
    """Return the tool that ends a skill.

    The tool's parameters are flat, because providers reject conditions at the top level of a schema.
    `FinishShape` checks the requirements of each outcome.
    """
    result = simplify(skill.result) if skill.result is not None else {"type": "object"}
    return ToolDefinition(
        FINISH,
        "End the task. success: data is the result. failure: data is what there is. "
        "uncertain: only the user can settle it.",
        _parameters(result),
        judged_by=_judged(),
    )


def _parameters(data: JsonObject) -> JsonObject:
    message = "Unless success: what is wrong or open, for the user"
    notes: JsonObject = {"type": "array", "items": {"type": "string"}, "description": "For later tasks"}
    return _finish(data, {"type": "string", "description": message}, notes)


def _judged() -> JsonObject:
    """Return the schema that validates the arguments of `finish`. Null stands for an omitted argument."""
    notes: JsonObject = {
        "type": ["array", "null"],
        "maxItems": MOST_ENTRIES,
        "items": {"type": "string", "maxLength": LONGEST},
    }
    return _finish({"type": ["object", "null"]}, {"type": ["string", "null"], "maxLength": LONGEST}, notes)


def _finish(data: JsonObject, message: JsonObject, notes: JsonObject) -> JsonObject:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": ["outcome"],
        "properties": {
            "outcome": {"type": "string", "enum": ["success", "failure", "uncertain"]},
            "data": data,
            "message": message,
            "notes": notes,
        },
    }


@dataclass(frozen=True, slots=True)
class FinishShape:
    """The required shapes for `finish`: `ending` for its arguments, `result` for the data after a success."""

    ending: Shape
    result: Shape

    def mismatch(self, body: JsonObject) -> str | None:
        """Return where and why the arguments do not match, or None."""
        fault = self.ending.mismatch(body)
        if fault is not None:
            return fault
        if body["outcome"] == "success":
            data = body.get("data")
            return "success needs data" if data is None else self.result.mismatch(data)
        return None if body.get("message") else f"{body['outcome']} needs a message for the user"


def shape_of(skill: SkillSpec, finish: ToolDefinition) -> FinishShape:
    return FinishShape(
        Shape(finish.judged_by or finish.parameters), Shape(skill.result or {"type": "object"})
    )


def find_fault(answer: ToolsAnswer, shape: FinishShape, *, last: bool = False) -> str | None:
    """Return why an answer is neither a tool call nor a valid `finish`, or None.

    `last`: True if only `finish` is allowed.
    """
    ends = [call for call in answer.calls if call.name == FINISH]
    if len(ends) > 1:
        return f"{FINISH} can be called only once"
    if ends and len(answer.calls) > 1:
        return f"{FINISH} must be called alone: no other calls are allowed"
    if ends:
        return shape.mismatch(ends[0].arguments)
    if answer.calls:
        return f"no steps are left: call {FINISH} with the results so far" if last else None
    body = read_json(answer.text)
    if not is_object(body):
        return f"text alone does nothing: call a tool, or {FINISH}"
    return shape.mismatch(body)


def read_end(answer: ToolsAnswer) -> JsonObject | None:
    """Return the arguments of `finish`, from a call or from JSON text, or None for other calls."""
    if not answer.calls:
        return read_json(answer.text)
    return answer.calls[0].arguments if answer.calls[0].name == FINISH else None


def read_outcome(body: JsonObject, failed: FailureCategory | None) -> Success | Failed:
    """Convert valid arguments of `finish` to an outcome. `failed`: the last call's failure, or None."""
    data: JsonObject = body.get("data") or {}
    match body["outcome"]:
        case "success":
            return Success(data, tuple(body.get("notes") or ()))
        case "failure" if data:
            return Success(data, warning=body["message"])
        case "failure":
            return Failed(failed or FailureCategory.NOT_FOUND, body["message"])
        case _:
            return Failed(FailureCategory.VALIDATION_ERROR, body["message"], uncertain=True, evidence=data)
