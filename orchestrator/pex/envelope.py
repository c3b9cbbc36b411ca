"""What comes back from a tool: data, or an error with a category (PX-8).

The same in memory and, as JSON, in the journal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from orchestrator.errors import FailureCategory
from orchestrator.turns.step import UnknownOutcome
from orchestrator.types import Json, JsonObject

RETRYABLE = frozenset({FailureCategory.RATE_LIMIT, FailureCategory.TIMEOUT, FailureCategory.SERVER_ERROR})


@dataclass(frozen=True, slots=True)
class ToolData:
    data: JsonObject


@dataclass(frozen=True, slots=True)
class ToolError:
    """`undecided`: the tool was stopped or broke, so it may have had its effect all the same.

    `retry_after_s`: seconds after which a repetition makes sense, where that is known.
    """

    category: FailureCategory
    message: str
    undecided: bool = False
    retry_after_s: float | None = None

    @property
    def retryable(self) -> bool:
        return self.category in RETRYABLE


ToolResult: TypeAlias = ToolData | ToolError | UnknownOutcome


def write_envelope(result: ToolData | ToolError) -> JsonObject:
    match result:
        case ToolData(data):
            return {"ok": True, "data": data}
        case ToolError(category, message, undecided):
            return {
                "ok": False,
                "error": {"category": category.value, "message": message, "undecided": undecided},
            }


def read_envelope(body: Json) -> ToolData | ToolError:
    if body["ok"]:
        return ToolData(body["data"])
    error = body["error"]
    return ToolError(FailureCategory(error["category"]), error["message"], error["undecided"])
