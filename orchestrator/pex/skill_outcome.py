"""Reads how a skill ends: once, with success, failure or uncertain, in a form that a schema enforces (PX-6)."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from orchestrator.domain.model import SkillSpec
from orchestrator.errors import FailureCategory
from orchestrator.models.structured import Shape, ToolsAnswer, read_json
from orchestrator.pex.execution import Ending
from orchestrator.ports.language_model import ToolDefinition
from orchestrator.types import JsonObject, is_object

FINISH = "finish"
MOST_ENTRIES = 5


@dataclass(frozen=True, slots=True)
class Success:
    data: JsonObject
    entries: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Failure:
    """`partial`: what was found all the same. `retryable`: a second run may fare better."""

    category: FailureCategory
    message: str
    partial: JsonObject | None = None
    retryable: bool = False


@dataclass(frozen=True, slots=True)
class Uncertain:
    """The skill cannot go on. `reason` is fit for the user; `context` is evidence for a re-route."""

    reason: str
    context: JsonObject


@dataclass(frozen=True, slots=True)
class Interrupted:
    """A tool may only be called after the user's yes or an approval: the flow waits, the skill is over."""

    ending: Ending


SkillOutcome: TypeAlias = Success | Failure | Uncertain | Interrupted


def define_finish(skill: SkillSpec) -> ToolDefinition:
    """Define the tool with which a skill ends; its parameters are the contract."""
    data = skill.result or {"type": "object"}
    return ToolDefinition(
        FINISH,
        "End the task, once and for all. Call it alone. success: data holds the result. failure: a tool "
        "failed for good; partial_data holds what there is. uncertain: only the user, or another task, "
        "can settle what is open.",
        {
            "type": "object",
            "additionalProperties": False,
            "required": ["outcome"],
            "properties": {
                "outcome": {"enum": ["success", "failure", "uncertain"]},
                "data": data,
                "scratchpad_entries": {
                    "type": "array",
                    "maxItems": MOST_ENTRIES,
                    "items": {"type": "string", "maxLength": 500},
                    "description": "What later tasks should know, one short sentence each",
                },
                "error_category": {"enum": [category.value for category in FailureCategory]},
                "message": {
                    "type": "string",
                    "maxLength": 500,
                    "description": "What went wrong, for the user",
                },
                "partial_data": {"type": ["object", "null"]},
                "reason": {"type": "string", "maxLength": 500, "description": "What is open, for the user"},
                "context": {"type": "object"},
            },
            "allOf": [
                _requires("success", "data"),
                _requires("failure", "error_category", "message"),
                _requires("uncertain", "reason"),
            ],
        },
    )


def _requires(outcome: Literal["success", "failure", "uncertain"], *names: str) -> JsonObject:
    return {
        "if": {"properties": {"outcome": {"const": outcome}}},
        "then": {"required": list(names)},
    }


def find_fault(answer: ToolsAnswer, shape: Shape) -> str | None:
    """Say why an answer is neither a step nor an end."""
    ends = sum(call.name == FINISH for call in answer.calls)
    if ends > 1:
        return f"{FINISH} can be called only once"
    if ends and len(answer.calls) > 1:
        return f"{FINISH} must be called alone: nothing comes after it"
    if answer.calls:
        return None
    body = read_json(answer.text)
    if not is_object(body):
        return f"text alone is neither a step nor an end: call a tool, or {FINISH}"
    return shape.mismatch(body)


def read_end(answer: ToolsAnswer) -> JsonObject | None:
    """Read the arguments of `finish`, or the same written as text; None for a step."""
    if not answer.calls:
        return read_json(answer.text)
    return answer.calls[0].arguments if answer.calls[0].name == FINISH else None


def read_outcome(body: JsonObject) -> Success | Failure | Uncertain:
    """Turn the form of the contract, valid by its schema, into a value."""
    match body["outcome"]:
        case "success":
            return Success(body["data"], tuple(body.get("scratchpad_entries", ())))
        case "failure":
            category = FailureCategory(body["error_category"])
            return Failure(category, body["message"], body.get("partial_data"))
        case _:
            return Uncertain(body["reason"], body.get("context", {}))
