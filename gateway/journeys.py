"""Compare two sessions: where their lineages diverge, and what each session did afterwards (ST-4)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import orjson

from orchestrator.turns.effect import LedgerEntry
from orchestrator.turns.turn import TurnKind, TurnRecord, turn_object
from orchestrator.types import Epoch, Json, JsonObject, SessionId


@dataclass(frozen=True, slots=True)
class Stretch:
    """Part of a lineage: one session up to and including the epoch `until`, or the whole session if None."""

    session_id: SessionId
    until: Epoch | None = None


@dataclass(frozen=True, slots=True)
class Journey:
    """A session's lineage: its ancestors and itself, oldest first, with their turns and side effects."""

    stretches: Sequence[Stretch]
    turns: Mapping[SessionId, Sequence[TurnRecord]]
    effects: Sequence[LedgerEntry]

    @property
    def session_id(self) -> SessionId:
        return self.stretches[-1].session_id

    def after(self, fork: Stretch | None) -> list[JsonObject]:
        """Return summaries of the turns after `fork`. If `fork` is None, return summaries of all turns."""
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
    """Return a summary of a turn. A system turn's action is reduced to its name."""
    shown = turn_object(turn)
    said, action = turn.input.text, turn.input.action
    if action is not None:
        is_the_users = turn.input.kind is TurnKind.USER
        said = orjson.dumps(action).decode() if is_the_users else action["name"]
    names = ("session_id", "turn_id", "epoch", "status", "reply", "flows", "completed", "tools")
    return {"said": said, **{name: shown[name] for name in names}}


def find_fork(left: Journey, right: Journey) -> Stretch | None:
    """Return the last session and epoch that two lineages share, or None if they share no session."""
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
    """Return the members that differ between two turn summaries, or all members if a summary is missing."""
    if left is None or right is None:
        return [*COMPARED]
    return [name for name in COMPARED if left[name] != right[name]]


def compare(left: Journey, right: Journey) -> JsonObject:
    """Compare two lineages from the point where they diverge.

    The result is ``{left, right, common, turns, effects}``. `left` and `right` are the session IDs. `common`
    is the last shared ``{session_id, epoch}``, or None. `turns` has ``{left, right, differs}`` for each pair
    of later turns. `effects` has the side effects that only `left` or only `right` has.
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
