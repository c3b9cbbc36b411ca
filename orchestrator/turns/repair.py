"""The repairs that an operator can order for one session, and the order's format.

`agent.repairs` applies them; the store releases lanes.
"""

from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import ConfigDict, Field, StringConstraints

from orchestrator.errors import Refused
from orchestrator.turns.submission import NO_NUL, AnyJson, Identifier, PlainText, RequestBody
from orchestrator.types import JsonObject, is_object

REPAIR = "repair"
"""The action of a system turn that carries a repair order."""
REPAIRED = "repaired"
"""The event with the operator and reason of a repair."""
_OF_OPERATORS = frozenset({"by", "why"})
"""Fields that operators write for each other."""
MOST = 16


class Drop(RequestBody):
    """Drop a flow, as if the user had canceled it; for a plan, all its flows."""

    kind: Literal["drop"]
    flow: Identifier


class Mark(RequestBody):
    """Record whether a call had its side effect. `result`: what it would have returned, if it did."""

    kind: Literal["mark"]
    fingerprint: Identifier
    done: bool
    result: dict[str, AnyJson] = Field(default_factory=dict[str, AnyJson])


class TakeOver(RequestBody):
    """An operator takeover: the assistant records what the user says, and does nothing."""

    kind: Literal["take_over"]


class Say(RequestBody):
    """Send the user a message as the operator who has taken over."""

    kind: Literal["say"]
    text: Annotated[PlainText, StringConstraints(max_length=4000)]


class HandBack(RequestBody):
    """Return the conversation to the assistant."""

    kind: Literal["hand_back"]


class Release(RequestBody):
    """The release of a lane from its holder: another worker restarts the running turn."""

    kind: Literal["release"]
    done: ClassVar = "The lane is taken from its holder, and the turn at work is begun again."


class Retry(RequestBody):
    """Requeue a quarantined turn as the session's last."""

    kind: Literal["retry"]
    turn: Identifier
    done: ClassVar = "The turn is queued again, as the last one."


class GiveUp(RequestBody):
    """Drop a queued or quarantined turn."""

    kind: Literal["give_up"]
    turn: Identifier
    done: ClassVar = "The turn is given up."


Change: TypeAlias = Drop | Mark | TakeOver | Say | HandBack
"""Repairs committed as a turn."""
Urgent: TypeAlias = Release | Retry | GiveUp
"""Repairs applied immediately and one by one, because the lane may be stuck."""
Repair: TypeAlias = Annotated[Change | Urgent, Field(discriminator="kind")]


class WantedRepairs(RequestBody):
    """Repairs applied together, in order, or not at all."""

    repairs: Annotated[list[Repair], Field(min_length=1, max_length=MOST)]


class RepairOrder(WantedRepairs):
    """A repair order.

    `epoch`: the session's epoch when it was inspected. `why`: stored with the turn. `idempotency_key`:
    deduplicates the order.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "repairs": [{"kind": "drop", "flow": "book_flight"}],
                    "epoch": 3,
                    "why": "The user has said so on the phone.",
                }
            ]
        }
    )

    epoch: Annotated[int, Field(ge=0, le=2**53)]
    why: Annotated[str, StringConstraints(min_length=1, max_length=1000, pattern=NO_NUL)]
    idempotency_key: Identifier | None = None


class SignedOrder(RepairOrder):
    """An order for the lane, without immediate repairs. `by`: the operator."""

    repairs: list[Annotated[Change, Field(discriminator="kind")]]  # pyright: ignore[reportIncompatibleVariableOverride]
    by: str


GONE_ON = "The session has gone on since it was looked at."


def require_looked_at(*, moved: bool) -> None:
    """Raise Refused unless the session is still at the inspected epoch."""
    if moved:
        raise Refused(GONE_ON)


def require_held(*, held: bool, moved: bool) -> None:
    """Raise Refused unless a lane is held at the inspected epoch."""
    require_looked_at(moved=moved)
    if not held:
        raise Refused("Nobody holds the lane of this session: there is nothing to release.")


def without_reasons(told: JsonObject) -> JsonObject:
    """Return an event, order or turn for users: without the operators and their reasons."""
    kept = {name: value for name, value in told.items() if name not in _OF_OPERATORS}
    if is_object(repair := told.get("repair")):
        kept["repair"] = without_reasons(repair)
    if is_object(action := told.get("action")) and action.get("name") == REPAIR:
        kept["action"] = {**action, "payload": without_reasons(action["payload"])}
    return kept
