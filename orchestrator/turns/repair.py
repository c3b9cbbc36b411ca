"""Repair orders for a session, submitted by operators.

`orchestrator.agent.repairs` applies ordinary repairs in a turn. Stores apply urgent repairs directly.
"""

from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import ConfigDict, Field, StringConstraints

from orchestrator.errors import Refused
from orchestrator.turns.submission import NO_NUL, AnyJson, Identifier, PlainText, RequestBody
from orchestrator.types import JsonObject, is_object

REPAIR = "repair"
"""The action of a system turn that contains a repair order."""
REPAIRED = "repaired"
"""The type of the event that reports a repair, with the operator and the reason."""
_OF_OPERATORS = frozenset({"by", "why"})
MOST = 16


class Drop(RequestBody):
    """Drop a flow, as if the user had canceled it. Dropping a plan drops all of its flows."""

    kind: Literal["drop"]
    flow: Identifier


class Mark(RequestBody):
    """Record whether a call's side effect took place. `result`: the call's result, if `done` is true."""

    kind: Literal["mark"]
    fingerprint: Identifier
    done: bool
    result: dict[str, AnyJson] = Field(default_factory=dict[str, AnyJson])


class TakeOver(RequestBody):
    """Start an operator takeover. During the takeover, the assistant only records the user's messages."""

    kind: Literal["take_over"]


class Say(RequestBody):
    """Send a message to the user during an operator takeover."""

    kind: Literal["say"]
    text: Annotated[PlainText, StringConstraints(max_length=4000)]


class HandBack(RequestBody):
    """Return the conversation to the assistant."""

    kind: Literal["hand_back"]


class Release(RequestBody):
    """Release the session lane from its worker. Another worker restarts the running turn."""

    kind: Literal["release"]
    done: ClassVar = "Another worker takes over the session and restarts the running turn."


class Retry(RequestBody):
    """Requeue a quarantined turn at the end of the session's queue."""

    kind: Literal["retry"]
    turn: Identifier
    done: ClassVar = "The turn is queued again, at the end of the session's queue."


class GiveUp(RequestBody):
    """Drop a queued or quarantined turn."""

    kind: Literal["give_up"]
    turn: Identifier
    done: ClassVar = "The turn is dropped."


Change: TypeAlias = Drop | Mark | TakeOver | Say | HandBack
"""Repairs that are committed as a turn."""
Urgent: TypeAlias = Release | Retry | GiveUp
"""Repairs that are applied immediately, one at a time, because the lane may be stuck."""
Repair: TypeAlias = Annotated[Change | Urgent, Field(discriminator="kind")]


class WantedRepairs(RequestBody):
    """Repairs to apply together, in order. If one of them fails, none is applied."""

    repairs: Annotated[list[Repair], Field(min_length=1, max_length=MOST)]


class RepairOrder(WantedRepairs):
    """A repair order. `epoch`: the session's epoch when the operator inspected the session.

    `why`: the reason, stored with the repair. `idempotency_key`: prevents the order from being applied twice.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "repairs": [{"kind": "drop", "flow": "book_flight"}],
                    "epoch": 3,
                    "why": "The user confirmed this on the phone.",
                }
            ]
        }
    )

    epoch: Annotated[int, Field(ge=0, le=2**53)]
    why: Annotated[str, StringConstraints(min_length=1, max_length=1000, pattern=NO_NUL)]
    idempotency_key: Identifier | None = None


class SignedOrder(RepairOrder):
    """A repair order without urgent repairs. `by`: the operator who signed the order."""

    repairs: list[Annotated[Change, Field(discriminator="kind")]]  # pyright: ignore[reportIncompatibleVariableOverride]
    by: str


GONE_ON = "The session has changed in the meantime."


def require_looked_at(*, moved: bool) -> None:
    """Raise Refused if the session has changed since the operator inspected it."""
    if moved:
        raise Refused(GONE_ON)


def require_held(*, held: bool, moved: bool) -> None:
    """Raise Refused unless a worker holds the session lane and the session is still at the inspected epoch."""
    require_looked_at(moved=moved)
    if not held:
        raise Refused("No worker holds this session, so there is nothing to release.")


def without_reasons(told: JsonObject) -> JsonObject:
    """Return an event, order or turn without the operator's name and reason, for display to users."""
    kept = {name: value for name, value in told.items() if name not in _OF_OPERATORS}
    if is_object(repair := told.get("repair")):
        kept["repair"] = without_reasons(repair)
    if is_object(action := told.get("action")) and action.get("name") == REPAIR:
        kept["action"] = {**action, "payload": without_reasons(action["payload"])}
    return kept
