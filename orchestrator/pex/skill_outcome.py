"""The outcomes of a skill, and the `finish` tool whose schema enforces them (PX-6)."""

from __future__ import annotations

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


@dataclass(frozen=True, slots=True)
class Finish:
    """The tool that ends a skill, and the required shapes: `ending` for its arguments, `result` for the data.

    The tool's parameters are flat, because providers reject conditions at the top level of a schema.
    `mismatch` checks the requirements of each outcome.
    """

    definition: ToolDefinition
    ending: Shape
    result: Shape

    @classmethod
    def of(cls, skill: SkillSpec) -> Finish:
        result: JsonObject = {"type": "object"} if skill.result is None else skill.result
        message = "Unless success: what is wrong or open, for the user"
        parameters = _finish(
            data=simplify(result),
            message={"type": "string", "description": message},
            notes={"type": "array", "items": {"type": "string"}, "description": "For later tasks"},
        )
        # This schema validates the arguments. Null stands for an omitted argument.
        judged_by = _finish(
            data={"type": ["object", "null"]},
            message={"type": ["string", "null"], "maxLength": LONGEST},
            notes={
                "type": ["array", "null"],
                "maxItems": MOST_ENTRIES,
                "items": {"type": "string", "maxLength": LONGEST},
            },
        )
        description = (
            "End the task. success: data is the result. failure: data is what there is. "
            "uncertain: only the user can settle it."
        )
        definition = ToolDefinition(FINISH, description, parameters, judged_by=judged_by)
        return cls(definition, Shape(judged_by), Shape(result))

    def mismatch(self, body: JsonObject) -> str | None:
        """Return where and why the arguments do not match, or None."""
        fault = self.ending.mismatch(body)
        if fault is not None:
            return fault
        if body["outcome"] == "success":
            data = body.get("data")
            return "success needs data" if data is None else self.result.mismatch(data)
        return None if body.get("message") else f"{body['outcome']} needs a message for the user"


def _finish(*, data: JsonObject, message: JsonObject, notes: JsonObject) -> JsonObject:
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


def find_fault(answer: ToolsAnswer, finish: Finish, *, last: bool = False) -> str | None:
    """Return why an answer is neither a tool call nor a valid `finish`, or None.

    `last`: True if only `finish` is allowed.
    """
    ends = [call for call in answer.calls if call.name == FINISH]
    if len(ends) > 1:
        return f"{FINISH} can be called only once"
    if ends and len(answer.calls) > 1:
        return f"{FINISH} must be called alone: no other calls are allowed"
    if ends:
        return finish.mismatch(ends[0].arguments)
    if answer.calls:
        return f"no steps are left: call {FINISH} with the results so far" if last else None
    body = read_json(answer.text)
    if not is_object(body):
        return f"text alone does nothing: call a tool, or {FINISH}"
    return finish.mismatch(body)


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
