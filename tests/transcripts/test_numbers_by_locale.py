"""Numbers are interpreted in the user's locale; quoted words stay unchanged."""

from __future__ import annotations

from pathlib import Path

from orchestrator.turns.turn import TurnInput
from parley.simulator import Simulator
from tests.cases import for_each
from tests.trained import state_of

DONATIONS = Path(__file__).parents[2] / "examples" / "donations"


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
    talk = Simulator.of(DONATIONS).converse()
    await talk.submit(TurnInput(words, locale=locale))
    assert state_of(talk)["stack"][-1]["slots"]["amount"]["value"] == amount
