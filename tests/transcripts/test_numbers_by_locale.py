"""Numbers are interpreted in the user's locale; quoted words stay unchanged."""

from __future__ import annotations

from orchestrator.turns.turn import TurnInput
from tests.cases import for_each
from tests.trained import converse, state_of


@for_each(
    ("locale", "words", "amount"),
    [
        ("de-DE", "give 1.500 euros to the forests", 1500),
        ("de-DE", "give 2,5 euros to the forests", 2.5),
        ("fr-FR", "give 40 000 euros to the forests", 40000),
        ("en-US", "give 1,500 euros to the forests", 1500),
        (None, "give 1,500 euros to the forests", 1500),
    ],
)
async def test_an_amount(locale: str | None, words: str, amount: float) -> None:
    talk = converse("examples/donations")
    await talk.submit(TurnInput(words, locale=locale))
    assert state_of(talk)["stack"][-1]["slots"]["amount"]["value"] == amount
