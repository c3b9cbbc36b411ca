"""Messages to the user, except texts for completed tasks and open questions.

A message names a template and its values, and RES renders the template.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from orchestrator.types import JsonObject


class NoticeKind(StrEnum):
    """Kinds of messages. Each has a base template with the same name, which domains can override."""

    GREETING = "greeting"
    REJECTED = "rejected"
    """The user's message was rejected before interpretation. `why`: the failed check."""
    BAD_ACTION = "bad_action"
    """An invalid or outdated click."""
    RECALLED = "recalled"
    """Values taken from the user's memories, which the user can correct."""
    SAID_BEFORE = "said_before"
    """Values that a model found in the conversation, which the user can correct."""
    LOOKED_UP = "looked_up"
    """Values that a model found in documents, which the user can correct."""
    CORRECTED = "corrected"
    CARRIED = "carried"
    """Values copied from differently named slots of other tasks, which the user can correct."""
    CLEARED = "cleared"
    """Values that no longer apply after a correction."""
    CANCELLED = "cancelled"
    NOTHING_TO_CANCEL = "nothing_to_cancel"
    RESUMED = "resumed"
    NOTHING_TO_RESUME = "nothing_to_resume"
    BACK_TO = "back_to"
    """An interrupted task is on top again because the task above it finished."""
    NOTHING_OPEN = "nothing_open"
    """A confirmation or denial without an open question."""
    OVER = "over"
    """A click on something that is no longer open."""
    DECLINED = "declined"
    """The user answered “no” to a pending call, displayed rows or a suggestion."""
    SAY_YES = "say_yes"
    """The message may have meant “yes”, but only a plain “yes” confirms."""
    NOT_UNDERSTOOD = "not_understood"
    """The message doesn't answer the open question and can't be interpreted in any other way."""
    STAYS = "stays"
    """An earlier side effect stays in place and is not repeated."""
    UNDONE = "undone"
    """A side effect from before a correction was undone."""
    ANSWER = "answer"
    """A declared answer to a question about the domain."""
    NO_ANSWER = "no_answer"
    ROW = "row"
    """Another displayed row, at the user's request."""
    ROW_FIELDS = "row_fields"
    ROW_CHOSEN = "row_chosen"
    NO_MORE_ROWS = "no_more_rows"
    PAGE = "page"
    NO_PAGE = "no_page"
    """The requested page doesn't exist. `pages`: number of pages, or 0 if no table was displayed."""
    CLARIFICATION = "clarification"
    HELP = "help"
    STATUS = "status"
    CHITCHAT = "chitchat"
    SMALL_TALK = "small_talk"
    """The standard answer to small talk. `about`: a kind of small talk, such as thanks or goodbye."""
    INVALID_VALUE = "invalid_value"
    TOO_EARLY = "too_early"
    """A date precedes the date of its `not_before` slot. `slots`: the two dates, by slot name."""
    ASSUMED = "assumed"
    """An assumption about the message. `why`: a sentence for the user."""
    LIMIT_REACHED = "limit_reached"
    MADE_ROOM = "made_room"
    ABANDONED = "abandoned"
    FAILED = "failed"
    """A task failed. `category` and `message`: the reason."""
    STOPPED = "stopped"
    """The turn was stopped. `done`: its side effects. `overtaken`: True if a later message stopped it."""
    UNKNOWN_OUTCOME = "unknown_outcome"
    ESCALATED = "escalated"
    """A question was asked too many times."""
    LEFT_UNKNOWN = "left_unknown"
    """The user does not want to repeat a call with an unknown outcome."""
    APPROVAL = "approval"
    NOT_APPROVED = "not_approved"
    """An approval ended without a grant. `status`: denied, expired or void."""
    APPROVAL_OVER = "approval_over"
    """A decision on an approval that is no longer pending."""
    HANDED_OVER = "handed_over"
    """An operator was asked to answer in the session. `waits`: True if an earlier request is still pending."""
    PERSON_ANSWERED = "person_answered"
    """An operator's answer, or the message that no operator could help."""
    STILL_WAITING = "still_waiting"
    """A requested task that is already waiting for approval."""
    AWAITING = "awaiting"
    """A tool accepted a call and returns the result later.

    `message`: the tool's text. `again`: True if the user was informed before.
    """
    RESULT_OVERDUE = "result_overdue"
    LATE_RESULT = "late_result"
    """The result of a call whose task was canceled. `done`: True if the call succeeded. `message`: the failure."""
    LOOKING = "looking"
    """A task waits for context. The user is informed when the context has arrived."""
    PLANNED = "planned"
    """A plan was created. `steps`: its steps in order."""
    REPLANNED = "replanned"
    """A plan changed significantly.

    `added`, `dropped`: step labels. `reordered`: True if the order changed. `steps`: the remaining
    steps.
    """
    PLAN_UNFINISHED = "plan_unfinished"
    """A plan ended without reaching its goal. `missing`: unmet parts of the goal. `reasons`: why steps weren't done."""
    PLAN_IN_PART = "plan_in_part"
    """A plan ended without the steps that the user dropped. `done`, `left_out`: lists of steps."""
    PLAN_STATUS = "plan_status"
    NO_SUCH_STEP = "no_such_step"
    """A request to change a step that the plan doesn't have."""


@dataclass(frozen=True, slots=True)
class Notice:
    kind: NoticeKind
    values: JsonObject = field(default_factory=JsonObject)
