"""Checks of counted sessions in addition to `lab.soak.checks`: each count, each effect, the last state."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from lab.soak import checks
from lab.soak.checks import ANSWERED, StoredTurn
from orchestrator.adapters.postgres.statements import parse, source
from orchestrator.dialogue.storage.serialization import rebuild
from tests.integration.chaos.processes.counting import EMPTY, fold


@dataclass(frozen=True)
class History:
    """Data for the checks. `accepted`: turns confirmed to submitters. `counts` and `effects`: by turn."""

    accepted: frozenset[str]
    sessions: checks.History
    states: dict[str, dict[str, Any]]
    counts: dict[str, int | None]
    effects: Counter[str] = field(default_factory=Counter)

    @property
    def turns(self) -> list[StoredTurn]:
        return [turn for session in self.sessions.values() for turn in session.turns]


def read_history(database_url: str, accepted: set[str]) -> History:
    """Read all data for the checks. `accepted`: turns that the submitters recorded."""
    with checks.snapshot(database_url) as connection:
        sessions = checks.read_history(connection)
        results = connection.execute("SELECT turn_id, result FROM turns")
        counts = {turn: None if body is None else body.get("count") for turn, body in results}
        rows = connection.execute(parse(f"SELECT session_id, body, {source('parts/diffs')} FROM states").text)
        states = {session: rebuild(body, diffs) for session, body, diffs in rows}
        effects: Counter[str] = Counter()
        if connection.execute("SELECT to_regclass('counted_effects')").fetchone() != (None,):
            effects.update(turn for (turn,) in connection.execute("SELECT turn_id FROM counted_effects"))
    return History(frozenset(accepted), sessions, states, counts, effects)


def check(history: History) -> list[str]:
    """Return all violations, or an empty list."""
    return [
        *checks.check(history.sessions, history.accepted),
        *(
            f"turn {turn} had its effect {count} times"
            for turn, count in history.effects.items()
            if count > 1
        ),
        *(
            f"{name}: {breach}"
            for name, session in history.sessions.items()
            for breach in _check_fold(session.turns, history.states.get(name, EMPTY), history.counts)
        ),
    ]


def _check_fold(turns: list[StoredTurn], stored: dict[str, Any], counts: dict[str, int | None]) -> list[str]:
    state = EMPTY
    for turn in turns:
        if turn.status != ANSWERED:
            continue
        state = fold(state, turn.text or "")
        if counts.get(turn.turn_id) != state["count"]:
            return [f"turn {turn.seq} counted {counts.get(turn.turn_id)} instead of {state['count']}"]
    return [] if stored == state else [f"the state {stored} is not the fold of its turns {state}"]
