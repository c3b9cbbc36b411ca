"""Repairs: what an operator may change in one session, as a closed set, and the order in which they are given.

What each does to a session is decided in `agent.repairs`; releasing a lane, in the store.
"""

from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import ConfigDict, Field, StringConstraints

from orchestrator.errors import Refused
from orchestrator.turns.submission import NO_NUL, AnyJson, Identifier, PlainText, RequestBody

REPAIR = "repair"
"""The action of a system turn that brings an order."""
REPAIRED = "repaired"
"""The event that says who repaired what, and why."""
MOST = 16


class Fill(RequestBody):
    """Give a slot of a waiting flow a value, judged by the slot's type. `flow`: its identifier or its dact."""

    kind: Literal["fill"]
    flow: Identifier
    slot: Identifier
    value: AnyJson


class Drop(RequestBody):
    """Give a flow up, as if the user had cancelled it; of a plan, all its flows."""

    kind: Literal["drop"]
    flow: Identifier


class Resume(RequestBody):
    """Bring a waiting flow to the top; one that waits for context waits no longer."""

    kind: Literal["resume"]
    flow: Identifier


class Mend(RequestBody):
    """Put right what must not be in a stored state."""

    kind: Literal["mend"]


class Mark(RequestBody):
    """Say whether a call had its effect. `result`: what it would have returned, where it had."""

    kind: Literal["mark"]
    fingerprint: Identifier
    done: bool
    result: dict[str, AnyJson] = Field(default_factory=dict[str, AnyJson])


class TakeOver(RequestBody):
    """Answer the user as a person from now on: the assistant keeps what the user says, and does nothing."""

    kind: Literal["take_over"]


class Say(RequestBody):
    """Tell the user something as the person who has taken over."""

    kind: Literal["say"]
    text: Annotated[PlainText, StringConstraints(max_length=4000)]


class HandBack(RequestBody):
    """Leave the conversation to the assistant again."""

    kind: Literal["hand_back"]


class Release(RequestBody):
    """Take the lane from whoever holds it: the turn at work there is begun again by another worker."""

    kind: Literal["release"]
    done: ClassVar = "The lane is taken from its holder, and the turn at work is begun again."


class Retry(RequestBody):
    """Queue a turn that was set aside again, as the session's last."""

    kind: Literal["retry"]
    turn: Identifier
    done: ClassVar = "The turn is queued again, as the last one."


class GiveUp(RequestBody):
    """Give up a turn that waits or was set aside."""

    kind: Literal["give_up"]
    turn: Identifier
    done: ClassVar = "The turn is given up."


Change: TypeAlias = Fill | Drop | Resume | Mend | Mark | TakeOver | Say | HandBack
"""What is committed as a turn."""
Urgent: TypeAlias = Release | Retry | GiveUp
"""What is made at once, by itself: the lane may be stuck."""
Repair: TypeAlias = Annotated[Change | Urgent, Field(discriminator="kind")]


class WantedRepairs(RequestBody):
    """Repairs that are made together, in their order, or not at all."""

    repairs: Annotated[list[Repair], Field(min_length=1, max_length=MOST)]


class RepairOrder(WantedRepairs):
    """`epoch`: of the session that was looked at. `why`: kept with the turn.

    `idempotency_key`: the same order with the same key is made once.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "repairs": [
                        {"kind": "fill", "flow": "book_flight", "slot": "date", "value": "2026-12-04"}
                    ],
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
    """An order as the lane gets it: without what is made at once. `by`: who makes it."""

    repairs: list[Annotated[Change, Field(discriminator="kind")]]  # pyright: ignore[reportIncompatibleVariableOverride]
    by: str


GONE_ON = "The session has gone on since it was looked at."


def require_looked_at(*, moved: bool) -> None:
    """Raises Refused unless the session is at the epoch that was looked at."""
    if moved:
        raise Refused(GONE_ON)


def require_held(*, held: bool, moved: bool) -> None:
    """Raises Refused unless there is a lane to be released, at the epoch that was looked at."""
    require_looked_at(moved=moved)
    if not held:
        raise Refused("Nobody holds the lane of this session: there is nothing to release.")
