"""Check a soak test's stored data for broken guarantees, in the style of Jepsen, for any domain.

Apart from the stored data, the checks use only the IDs of accepted turns, which the clients recorded.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg

from orchestrator.adapters.postgres.events import number_entries

ANSWERED = "done"
UNFINISHED = frozenset({"queued", "running"})
# Ledger statuses with an unknown outcome.
UNCLEAR = frozenset({"started", "unknown"})


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """A stored turn. `epoch`: the epoch that it committed, or None. `token`: the commit's fencing token, or None."""

    turn_id: str
    session_id: str
    seq: int
    status: str
    kind: str
    text: str | None
    epoch: int | None
    token: int | None


@dataclass(slots=True)
class SessionHistory:
    """A session's stored data. `answers`: number of answer events by turn. `effects`: tool IDs and ledger statuses."""

    epoch: int = 0
    turns: list[StoredTurn] = field(default_factory=list[StoredTurn])
    epochs: list[int] = field(default_factory=list[int])
    event_numbers: list[int] = field(default_factory=list[int])
    answers: Counter[str] = field(default_factory=Counter[str])
    effects: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])


History = dict[str, SessionHistory]  # by session


@contextmanager
def snapshot(database_url: str) -> Iterator[psycopg.Connection]:
    """Open a connection whose reads share a snapshot."""
    with psycopg.connect(database_url) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        yield connection


def read_history(connection: psycopg.Connection) -> History:
    history: History = defaultdict(SessionHistory)
    for session, epoch in connection.execute("SELECT session_id, epoch FROM lanes"):
        history[session].epoch = epoch
    turns = "SELECT turn_id, session_id, seq, status, kind, text, epoch, token FROM turns ORDER BY 2, 3"
    for row in connection.execute(turns):
        history[row[1]].turns.append(StoredTurn(*row))
    for session, epoch in connection.execute("SELECT session_id, epoch FROM state_history ORDER BY 1, 2"):
        history[session].epochs.append(epoch)
    events = "SELECT session_id, number, turn_id, body FROM events ORDER BY 1, 2"
    for session, last, turn, body in connection.execute(events):
        for number, entry in number_entries(last, body):
            history[session].event_numbers.append(number)
            history[session].answers[entry.get("turn_id", turn)] += entry["type"] == "answer"
    effects = "SELECT session_id, tool_id, status FROM effects ORDER BY session_id, at"
    for session, tool, status in connection.execute(effects):
        history[session].effects.append((tool, status))
    return dict(history)


def check(history: History, accepted: AbstractSet[str]) -> list[str]:
    """Return all broken guarantees. `accepted`: IDs of accepted turns."""
    stored = {turn.turn_id for session in history.values() for turn in session.turns}
    breaches = [f"accepted turn {turn} is not stored" for turn in sorted(accepted - stored)]
    for name, session in history.items():
        breaches += [f"{name}: {breach}" for breach in check_session(session)]
    return breaches


def check_session(session: SessionHistory) -> list[str]:
    return [
        *_check_turns(session.turns),
        *_check_answers(session),
        *_check_order([turn for turn in session.turns if turn.epoch is not None]),
        *_check_run("epochs", session.epochs, session.epoch),
        *_check_run("events", session.event_numbers, len(session.event_numbers)),
        *(f"the outcome of {tool} is unknown" for tool, status in session.effects if status in UNCLEAR),
    ]


def _check_turns(turns: list[StoredTurn]) -> Iterable[str]:
    for turn in turns:
        if turn.status in UNFINISHED:
            yield f"turn {turn.seq} ended as {turn.status}"
    yield from _check_run("turns", [turn.seq for turn in turns], len(turns))


def _check_answers(session: SessionHistory) -> Iterable[str]:
    for turn in session.turns:
        count = session.answers[turn.turn_id]
        if count > 1:
            yield f"turn {turn.seq} was answered {count} times"
        if turn.status == ANSWERED and turn.kind == "user" and count == 0:
            yield f"turn {turn.seq} has no answer event"


def _check_order(committed: list[StoredTurn]) -> Iterable[str]:
    epochs = [turn.epoch for turn in committed]
    if epochs != list(range(1, len(epochs) + 1)):
        yield f"turns are not committed once and in order: epochs {epochs}"
    tokens = [turn.token or 0 for turn in committed]
    if tokens != sorted(tokens):
        yield f"a smaller token committed after a larger one: {tokens}"


def _check_run(what: str, numbers: list[Any], last: int) -> Iterable[str]:
    """Yield a message about `what` unless the numbers are 1, 2, … `last`."""
    if numbers != list(range(1, last + 1)):
        yield f"{what} are not numbered 1 to {last}: {numbers}"
