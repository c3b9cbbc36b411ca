"""The domain that `parley domain new` makes, talked to as it stands."""

from __future__ import annotations

from pathlib import Path

from orchestrator.simulator import Simulator
from parley.commands.domain import scaffold


async def test_a_search_without_results_says_that_it_found_nothing(tmp_path: Path) -> None:
    """RS-3: the base template does not repeat what was asked as if it were an answer."""
    talk = Simulator.of(scaffold("notes", tmp_path)).converse()
    turn = await talk.say("show my notes about home")
    assert (turn["completed"], turn["reply"]) == (["list_notes"], "I found nothing that fits.")
