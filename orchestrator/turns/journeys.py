"""Forked sessions: where two diverge, and what each did afterwards (ST-4). Records and rules only."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import orjson

from orchestrator.turns.effect import LedgerEntry
from orchestrator.turns.turn import TurnKind, TurnRecord, turn_object
from orchestrator.types import Epoch, Json, JsonObject, SessionId


@dataclass(frozen=True, slots=True)
class Stretch:
    """Part of a lineage: what one session did up to and including an epoch; None for all of it."""

    session_id: SessionId
    until: Epoch | None = None


@dataclass(frozen=True, slots=True)
class Journey:
    """A session with its ancestors, oldest first, and their turns and side effects by session."""

    stretches: Sequence[Stretch]
    turns: Mapping[SessionId, Sequence[TurnRecord]]
    effects: Sequence[LedgerEntry]

    @property
    def session_id(self) -> SessionId:
        return self.stretches[-1].session_id

    def after(self, fork: Stretch | None) -> list[JsonObject]:
        """Return the messages and effects after a fork, one entry per turn."""
        names = [one.session_id for one in self.stretches]
        start = names.index(fork.session_id) if fork is not None else 0
        since = (fork.until or 0) if fork is not None else 0
        return [
            show_doing(turn)
            for one in self.stretches[start:]
            for turn in sorted(self.turns.get(one.session_id, ()), key=lambda turn: turn.seq)
            if turn.epoch is not None
            and since < turn.epoch
            and (one.until is None or turn.epoch <= one.until)
        ]


def show_doing(turn: TurnRecord) -> JsonObject:
    """Return a summary of a turn without details of its reply; for a system turn only its name."""
    shown = turn_object(turn)
    said, action = turn.input.text, turn.input.action
    if action is not None:
        is_the_users = turn.input.kind is TurnKind.USER
        said = orjson.dumps(action).decode() if is_the_users else action["name"]
    names = ("session_id", "turn_id", "epoch", "status", "reply", "flows", "completed", "tools")
    return {"said": said, **{name: shown[name] for name in names}}


def find_fork(left: Journey, right: Journey) -> Stretch | None:
    """Return the last epoch that two lineages share, with its session, or None."""
    fork = None
    for one, other in zip(left.stretches, right.stretches, strict=False):
        if one.session_id != other.session_id:
            break
        ends = [end for end in (one.until, other.until) if end is not None]
        fork = Stretch(one.session_id, min(ends, default=None))
        if one.until != other.until:
            break
    return fork


COMPARED = ("said", "reply", "status", "flows", "completed", "tools")


def find_differences(left: JsonObject | None, right: JsonObject | None) -> list[str]:
    """Return the names of members that differ between two turns of `show_doing`; all if one is missing."""
    if left is None or right is None:
        return [*COMPARED]
    return [name for name in COMPARED if left[name] != right[name]]


def compare(left: Journey, right: Journey) -> JsonObject:
    """Compare two lineages from where they diverge.

    ``{left, right, common, turns, effects}``: the sessions, ``{session_id, epoch}`` of the last shared epoch
    or null, ``{left, right, differs}`` for each later turn, and the side effects that only one of them has.
    """
    fork = find_fork(left, right)
    shared = {one.idempotency_key for one in left.effects} & {one.idempotency_key for one in right.effects}
    pairs = zip_longest(left.after(fork), right.after(fork))
    return {
        "left": left.session_id,
        "right": right.session_id,
        "common": None if fork is None else {"session_id": fork.session_id, "epoch": fork.until},
        "turns": [
            {"left": one, "right": other, "differs": find_differences(one, other)} for one, other in pairs
        ],
        "effects": {"left": _own(left.effects, shared), "right": _own(right.effects, shared)},
    }


def _own(effects: Iterable[LedgerEntry], shared: set[str]) -> list[Json]:
    return [
        {
            "tool_id": one.tool_id,
            "arguments": one.arguments,
            "status": one.status.value,
            "turn_id": one.turn_id,
        }
        for one in effects
        if one.idempotency_key not in shared
    ]
