"""Runs of Internal flows as workers see them: claims, ends, and the port to the store.

A claim is the right to carry a part of a run out while its token is current; whoever lost it writes
nothing any more (IF-9).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from orchestrator.ports.run_status import ItemStatus, Phase, RedoStanding, RunStatus, Urgency
from orchestrator.ports.runs import Hint, Progress
from orchestrator.types import Json, JsonObject, SessionId, TenantId, TurnId


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What the stages of a run are told, as stored. `options` and `data` after `before_all`."""

    run_id: str
    tenant_id: TenantId
    session_id: SessionId | None
    flow: str
    redo_count: int | None
    parameters: JsonObject
    options: JsonObject
    config: JsonObject
    data: Json
    urgency: Urgency = Urgency.HOUSEKEEPING
    turn_id: TurnId | None = None


@dataclass(frozen=True, slots=True)
class RunClaim:
    """The right to carry a run's phase out while `token` is current. `attempts` counts this one.

    `inputs` are there before the items, `items` after them.
    """

    facts: RunFacts
    token: int
    phase: Phase
    attempts: int
    inputs: tuple[Json, ...] = ()
    items: Progress = field(default_factory=Progress)


@dataclass(frozen=True, slots=True)
class ClaimedItem:
    """One item to be carried out; `attempts` counts this one."""

    position: int
    input: Json
    attempts: int


@dataclass(frozen=True, slots=True)
class ItemsClaim:
    """The right to end some items while `token` is current."""

    facts: RunFacts
    token: int
    items: tuple[ClaimedItem, ...]


@dataclass(frozen=True, slots=True)
class ItemEnd:
    """What became of an item: an output, the reason it was skipped, or the error it failed with."""

    position: int
    status: ItemStatus
    output: Json = None
    reason: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a run ended. `redo_count`: the next run's place in the chain when one is to follow."""

    status: RunStatus
    closing: Json = None
    reason: str | None = None
    error: str | None = None
    redo: RedoStanding = RedoStanding.NONE
    redo_count: int | None = None
    redo_after_s: float = 0.0


class Recorded(StrEnum):
    """What writing the ends of items led to."""

    LOST = "lost"
    """The claim is no longer current; nothing was written."""
    MORE = "more"
    """Other items are unfinished."""
    ALL = "all"
    """No item is left: `after_all` may begin."""


class RunWork(Protocol):
    """Runs as workers see them. Every method that changes something is one transaction."""

    async def claim(self, run_id: str, config: JsonObject, *, waited_s: float = 0.0) -> RunClaim | None:
        """Take up `before_all` or `after_all`; `config` is kept with the run when it starts.

        `waited_s`: housekeeping that became ready later than so long ago is put off. None: nothing to do
        now, or somebody holds it.
        """
        ...

    async def begin_items(
        self, claim: RunClaim, inputs: tuple[Json, ...], options: JsonObject, data: Json
    ) -> bool:
        """`before_all` has ended: store the items. False: the claim is no longer current."""
        ...

    async def claim_items(self, run_id: str, *, waited_s: float = 0.0) -> ItemsClaim | None:
        """Take some unfinished items, unless as many holders as the run allows are at work already.

        `waited_s`: as in `claim`; items of housekeeping that waited long enough are taken one by one.
        """
        ...

    async def record_items(self, claim: ItemsClaim, ends: tuple[ItemEnd, ...], *, last: bool) -> Recorded:
        """Write what became of items, each once; `last` gives the claim back."""
        ...

    async def finish(self, claim: RunClaim, end: RunEnd) -> tuple[Hint, ...] | None:
        """End a run, release or block its successors, and add the next run of its chain.

        None: the claim is no longer current, nothing was written.
        """
        ...

    async def note_progress(self, run_id: str) -> tuple[int, JsonObject] | None:
        """Enter how far a run has come into its session's log; the number and payload of that event.

        Beginnings and ends are entered by themselves. None: it has no session.
        """
        ...

    async def outputs(self, run_id: str) -> list[Json]:
        """Outputs by position; None for items that were skipped."""
        ...

    async def renew(self) -> set[int]:
        """Prolong the claims of this worker; the tokens that are no longer current."""
        ...

    def give_up(self, token: int) -> None:
        """Stop prolonging a claim; what was not given back runs out, and another worker takes over."""
        ...

    async def sweep(self, *, limit: int = 500, waited_s: float = 0.0) -> tuple[Hint, ...]:
        """Free what dead or silent workers held, and name runs that a lost message left hanging.

        `waited_s`: as in `claim`.
        """
        ...
