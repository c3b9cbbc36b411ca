"""Remarks: what a turn has to tell the user besides finished tasks and open questions.

A remark names a template and gives its values; the words are chosen in RES.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from orchestrator.types import JsonObject


class RemarkKind(StrEnum):
    """Every kind has a base template of the same name, which a domain may override."""

    GREETING = "greeting"
    REJECTED = "rejected"
    """A message turned away before it was understood; `why` names the check."""
    BAD_ACTION = "bad_action"
    """A click that means nothing (any more)."""
    RECALLED = "recalled"
    """Values that were taken from what is remembered of the user; they can be corrected."""
    SAID_BEFORE = "said_before"
    """Values that a model found in the conversation; they can be corrected."""
    LOOKED_UP = "looked_up"
    """Values that a model found in documents; they can be corrected."""
    CORRECTED = "corrected"
    CARRIED = "carried"
    """Values that other tasks know by other names were taken over; they can be corrected."""
    CLEARED = "cleared"
    """Values that no longer hold after a correction."""
    CANCELLED = "cancelled"
    NOTHING_TO_CANCEL = "nothing_to_cancel"
    RESUMED = "resumed"
    NOTHING_TO_RESUME = "nothing_to_resume"
    BACK_TO = "back_to"
    """An interrupted task is on top again after the one above it finished."""
    NOTHING_OPEN = "nothing_open"
    """A yes or no without a question."""
    OVER = "over"
    """A click on something that is not open any more, or never was."""
    DECLINED = "declined"
    """A candidate was answered with no."""
    NOT_UNDERSTOOD = "not_understood"
    """The message did not answer the open question, nor was it anything else."""
    STAYS = "stays"
    """What was done before a correction stays as it is."""
    UNDONE = "undone"
    """What was done before a correction has been undone."""
    ANSWER = "answer"
    """A declared answer to a question about the domain."""
    NO_ANSWER = "no_answer"
    ROW = "row"
    """Another of the displayed rows, because the user asked for one."""
    ROW_FIELDS = "row_fields"
    """What a displayed row has in the fields that the user asked for."""
    ROW_CHOSEN = "row_chosen"
    NO_MORE_ROWS = "no_more_rows"
    CLARIFICATION = "clarification"
    HELP = "help"
    STATUS = "status"
    CHITCHAT = "chitchat"
    INVALID_VALUE = "invalid_value"
    ASSUMED = "assumed"
    """Values that nobody named were taken for granted; `why` says which."""
    LIMIT_REACHED = "limit_reached"
    MADE_ROOM = "made_room"
    ABANDONED = "abandoned"
    FAILED = "failed"
    """A task could not be done; `category` and `message` say why."""
    STOPPED = "stopped"
    """The turn was stopped; `done`: what its tools had done by then."""
    UNKNOWN_OUTCOME = "unknown_outcome"
    ESCALATED = "escalated"
    """The same question was asked too often."""
    LEFT_UNKNOWN = "left_unknown"
    """The user does not want to have it done again, although nobody knows whether it was done."""
    APPROVAL = "approval"
    NOT_APPROVED = "not_approved"
    """Denied, expired, or void; `status` says which."""
    APPROVAL_OVER = "approval_over"
    """A decision on something that is no longer asked."""
    STILL_WAITING = "still_waiting"
    """A task that was asked for again waits for an approval."""
    LOOKING = "looking"
    """A task waits for what is being looked up; the user hears of it when it is there."""
    PLANNED = "planned"
    """A plan was made; `steps` are told in order."""
    REPLANNED = "replanned"
    """A plan changed in a way that matters: `added`, `dropped`, `why`, and the `steps` still to come."""
    PLAN_UNFINISHED = "plan_unfinished"
    """A plan ended without its goal: what was done and what is missing."""
    PLAN_IN_PART = "plan_in_part"
    """A plan ended without steps that the user gave up: what was done and what was left out."""
    PLAN_STATUS = "plan_status"
    NO_SUCH_STEP = "no_such_step"
    """The user wants to change a step that the plan does not have (any more)."""


@dataclass(frozen=True, slots=True)
class Remark:
    kind: RemarkKind
    values: JsonObject = field(default_factory=JsonObject)
