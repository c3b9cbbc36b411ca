"""Sessions that branched: where two of them part, and what each did after that (ST-4). Records and rules only."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import orjson

from orchestrator.turns.effect import LedgerEntry
from orchestrator.turns.turn import TurnKind, TurnRecord, turn_object
from orchestrator.types import Epoch, Json, JsonObject, SessionId


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of a journey: what was done in one session, up to and with an epoch; None: to its end."""

    session_id: SessionId
    until: Epoch | None = None


@dataclass(frozen=True, slots=True)
class Journey:
    """A session with those that it branched off from, its first ancestor first; their turns and effects by session."""

    stretches: Sequence[Stretch]
    turns: Mapping[SessionId, Sequence[TurnRecord]]
    effects: Sequence[LedgerEntry]

    @property
    def session_id(self) -> SessionId:
        return self.stretches[-1].session_id

    def after(self, fork: Stretch | None) -> list[JsonObject]:
        """What was said and done since: a turn each, in order."""
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
    """What a turn did, without what only its answer needs; of a turn of the system its name alone."""
    shown = turn_object(turn)
    said, action = turn.input.text, turn.input.action
    if action is not None:
        is_the_users = turn.input.kind is TurnKind.USER
        said = orjson.dumps(action).decode() if is_the_users else action["name"]
    names = ("session_id", "turn_id", "epoch", "status", "reply", "flows", "completed", "tools")
    return {"said": said, **{name: shown[name] for name in names}}


def find_fork(left: Journey, right: Journey) -> Stretch | None:
    """The last epoch that two journeys share, and whose it is; None when they share nothing."""
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
    """Name what differs between two turns as `show_doing` gives them; everything where one is missing."""
    if left is None or right is None:
        return [*COMPARED]
    return [name for name in COMPARED if left[name] != right[name]]


def compare(left: Journey, right: Journey) -> JsonObject:
    """Lay two journeys beside each other from where they part.

    ``{left, right, common, turns, effects}``: the sessions, ``{session_id, epoch}`` of the last epoch that they share
    or null, ``{left, right, differs}`` for each turn since, and the effects that only one of them knows of.
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
