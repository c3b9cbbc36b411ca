"""Reads what a run left in the store and says what is wrong with it, in the manner of Jepsen.

It trusts nothing but the accepted submissions, the stored turns and the stored states.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

import orjson
import psycopg

from tests.integration.chaos.counting import EMPTY, fold

ANSWERED = "done"


@dataclass(frozen=True)
class StoredTurn:
    turn_id: str
    session_id: str
    seq: int
    status: str
    text: str
    epoch: int | None
    token: int | None
    count: int | None


@dataclass(frozen=True)
class History:
    """`accepted`: the turns that submitters were told of, by identifier."""

    accepted: frozenset[str]
    turns: list[StoredTurn]
    epochs: dict[str, int]
    states: dict[str, dict[str, Any]]
    answers: Counter[str] = field(default_factory=Counter)
    effects: Counter[str] = field(default_factory=Counter)
    committed_epochs: dict[str, list[int]] = field(default_factory=dict)


def read_history(database_url: str, accepted: set[str]) -> History:
    """Everything the checks need; `accepted` as the submitters noted it."""
    with psycopg.connect(database_url) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        turns = [
            StoredTurn(*row)
            for row in connection.execute(
                "SELECT turn_id, session_id, seq, status, text, epoch, token, (result->>'count')::int"
                " FROM turns ORDER BY session_id, seq"
            )
        ]
        epochs = dict(connection.execute("SELECT session_id, epoch FROM lanes").fetchall())
        states = {
            session: orjson.loads(bytes(body) if isinstance(body, bytes | memoryview) else body)
            for session, body in connection.execute("SELECT session_id, body FROM states")
        }
        answers = Counter(
            turn for (turn,) in connection.execute("SELECT turn_id FROM events WHERE type = 'answer'")
        )
        committed: dict[str, list[int]] = defaultdict(list)
        for session, epoch in connection.execute(
            "SELECT session_id, epoch FROM state_history ORDER BY session_id, epoch"
        ):
            committed[session].append(epoch)
        effects: Counter[str] = Counter()
        if connection.execute("SELECT to_regclass('counted_effects')").fetchone() != (None,):
            effects.update(turn for (turn,) in connection.execute("SELECT turn_id FROM counted_effects"))
    return History(frozenset(accepted), turns, epochs, states, answers, effects, dict(committed))


def check(history: History) -> list[str]:
    """Every breach of what was promised; empty when all held."""
    by_session: dict[str, list[StoredTurn]] = defaultdict(list)
    for turn in history.turns:
        by_session[turn.session_id].append(turn)
    breaches = [*_lost(history), *_repeated(history)]
    for session, turns in by_session.items():
        breaches += [f"{session}: {breach}" for breach in _check_session(session, turns, history)]
    return breaches


def _lost(history: History) -> list[str]:
    stored = {turn.turn_id for turn in history.turns}
    return [f"accepted turn {turn} is not stored" for turn in sorted(history.accepted - stored)]


def _repeated(history: History) -> list[str]:
    return [
        *(f"turn {turn} was answered {count} times" for turn, count in history.answers.items() if count > 1),
        *(
            f"turn {turn} had its effect {count} times"
            for turn, count in history.effects.items()
            if count > 1
        ),
    ]


def _check_session(session: str, turns: list[StoredTurn], history: History) -> list[str]:
    done = [turn for turn in turns if turn.status == ANSWERED]
    breaches = [
        f"turn {turn.seq} ended as {turn.status}" for turn in turns if turn.status in {"queued", "running"}
    ]
    if [turn.seq for turn in turns] != list(range(1, len(turns) + 1)):
        breaches.append(f"sequence is not contiguous: {[turn.seq for turn in turns]}")
    breaches += [f"turn {turn.seq} has no answer event" for turn in done if not history.answers[turn.turn_id]]
    committed = [turn for turn in turns if turn.epoch is not None]
    breaches += _check_order(committed)
    epochs = history.committed_epochs.get(session, [])
    if epochs != list(range(1, history.epochs.get(session, 0) + 1)):
        breaches.append(f"epochs do not advance by one: {epochs} up to {history.epochs.get(session)}")
    breaches += _check_fold(done, history.states.get(session, EMPTY))
    return breaches


def _check_order(turns: list[StoredTurn]) -> list[str]:
    epochs = [turn.epoch or 0 for turn in turns]
    tokens = [turn.token or 0 for turn in turns]
    breaches = []
    if epochs != list(range(1, len(epochs) + 1)):
        breaches.append(f"turns are not committed once and in order: epochs {epochs}")
    if tokens != sorted(tokens):
        breaches.append(f"a smaller token committed after a larger one: {tokens}")
    return breaches


def _check_fold(done: list[StoredTurn], stored: dict[str, Any]) -> list[str]:
    state = EMPTY
    for turn in done:
        state = fold(state, turn.text)
        if turn.count != state["count"]:
            return [f"turn {turn.seq} counted {turn.count} instead of {state['count']}"]
    return [] if stored == state else [f"the state {stored} is not the fold of its turns {state}"]
