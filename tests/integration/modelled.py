"""A travel domain with a scripted model for interpretation."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import yaml

from parley.testing.scripted_model import Answer, Reply, Rule, Script

ROOT = Path(__file__).resolve().parents[2]
TAPAS = "I fancy some tapas next to the Prado"
"""A word for Madrid that System 1 does not know."""


def travel_with(folder: Path, **sections: Any) -> Path:
    """Override sections of the travel domain, in a separate folder."""
    place = folder / "modelled"
    shutil.copytree(ROOT / "domains" / "travel", place, ignore=shutil.ignore_patterns("__pycache__"))
    path = place / "domain.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text(encoding="utf-8")) | sections))
    return place


def understood(kind: str, *flows: str, digression: str | None = None, **slots: Any) -> Answer:
    """Return an answer to `nlu_think` in the format of the model protocol."""
    scores = [{"dact": dact, "score": 0.9 - 0.2 * place} for place, dact in enumerate(flows)]
    return Answer(json={"kind": kind, "flows": scores, "slots": slots, "digression": digression})


def script_of(*replies: Reply) -> Script:
    """Return a script that understands tapas, and answers everything else with these replies."""
    return Script(
        rules=(
            Rule(match="tapas", replies=(understood("task", "book_flight", destination="Madrid"),)),
            Rule(replies=replies),
        )
    )
