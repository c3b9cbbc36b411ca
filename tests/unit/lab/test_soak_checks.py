"""Faults that the soak test's checks find in histories damaged on purpose (RT-17)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from lab.soak.checks import SessionHistory, StoredTurn, check
from tests.cases import for_each


def whole_session(turns: int = 3) -> SessionHistory:
    """Return a session without faults."""
    return SessionHistory(
        epoch=turns,
        turns=[
            StoredTurn(f"t{seq}", "s", seq, "done", "user", "hello", epoch=seq, token=1)
            for seq in range(1, turns + 1)
        ],
        epochs=list(range(1, turns + 1)),
        event_numbers=list(range(1, 2 * turns + 1)),
        answers=Counter({f"t{seq}": 1 for seq in range(1, turns + 1)}),
        effects=[("flight_book", "done")],
    )


def test_an_undamaged_history_has_no_breach() -> None:
    assert check({"s": whole_session()}, {"t1", "t2", "t3"}) == []


def _turn(place: int, **changes: object) -> Callable[[SessionHistory], None]:
    def damage(session: SessionHistory) -> None:
        session.turns[place] = replace(session.turns[place], **changes)

    return damage


@for_each(
    ("damage", "breach"),
    [
        (lambda s: s.turns.pop(), "accepted turn t3 is not stored"),
        (lambda s: s.turns.pop(0), "turns are not numbered 1 to 2: [2, 3]"),
        (_turn(2, status="running"), "turn 3 ended as running"),
        (lambda s: s.answers.update(["t2"]), "turn 2 was answered 2 times"),
        (lambda s: s.answers.pop("t2"), "turn 2 has no answer event"),
        (_turn(1, epoch=3), "epochs [1, 3, 3]"),
        (_turn(2, token=0), "a smaller token committed after a larger one: [1, 1, 0]"),
        (lambda s: s.epochs.remove(2), "epochs are not numbered 1 to 3: [1, 3]"),
        (lambda s: s.event_numbers.remove(4), "events are not numbered 1 to 5"),
        (lambda s: s.effects.append(("flight_book", "started")), "the outcome of flight_book is unknown"),
    ],
)
def test_each_damage_is_named(damage: Callable[[SessionHistory], None], breach: str) -> None:
    session = whole_session()
    damage(session)
    assert any(breach in found for found in check({"s": session}, {"t1", "t2", "t3"}))
