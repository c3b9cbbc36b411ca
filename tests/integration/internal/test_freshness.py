"""A flow that needs a summary at most three turns old: awaited, created or flagged, on real workers (IF-13)."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from orchestrator.adapters.domains.folder import load_domain
from orchestrator.errors import ConfigurationError
from orchestrator.types import DEFAULT_TENANT, SessionId
from tests.integration.chaos.fleet import fleet
from tests.integration.depot import DEPOT, DepotTalk

TURNS, ALL = "turns,submissions", "turns,submissions,internal,urgent"
SAID = (
    "list the shelves",
    "show all shelves",
    "which shelves are there",
    "shelves list please",
    "list the shelves",
)


class Talk(DepotTalk):
    async def summarised(self) -> int:
        """Return the last turn in the state's summary."""
        state = (await self.ports.stores.sessions.get(DEFAULT_TENANT, self.session_id)).state or {}
        return state.get("summary", {}).get("through_turn", 0)


def make_depot(tmp_path: Path, freshness: str) -> Path:
    folder = tmp_path / "depot"
    shutil.copytree(DEPOT, folder)
    ontology = folder / "ontology.yaml"
    flow = "    description: List the shelves\n"
    text = ontology.read_text()
    assert flow in text
    ontology.write_text(text.replace(flow, f"{flow}    freshness: {freshness}\n"))
    return folder


@pytest.mark.parametrize(
    ("otherwise", "of", "queues", "wait_s", "stale"),
    [
        ("flag", "summary", ALL, 2, True),
        ("wait", "summary", ALL, 30, False),
        pytest.param("wait", "memory", ALL, 30, False, marks=pytest.mark.slow),
        pytest.param("wait", "summary", TURNS, 0.3, True, marks=pytest.mark.slow),
        pytest.param("inline", "summary", TURNS, 30, False, marks=pytest.mark.slow),
    ],
)
async def test_what_is_too_old_is_made_anew_or_flagged(
    database_url: str,
    redis_url: str,
    tmp_path: Path,
    otherwise: str,
    of: str,
    queues: str,
    wait_s: float,
    stale: bool,
) -> None:
    freshness = f"{{of: {of}, turns: 3, otherwise: {otherwise}, wait_s: {wait_s}}}"
    folder = make_depot(tmp_path, freshness)
    with fleet(database_url, redis_url, tmp_path, {"PARLEY_DOMAIN": str(folder)}) as crew:
        crew.start(1, application="workers.app", queues=queues, threads=16)
        async with crew.ports() as ports:
            talk = Talk(ports, SessionId(tmp_path.name))
            turns = [await talk.say(text) for text in SAID]
            through = await talk.summarised()

    assert all(turn["completed"] == ["list_shelves"] for turn in turns)
    assert [turn["flags"].get("stale") for turn in turns] == [None] * 4 + [[of] if stale else None]
    if not stale:
        assert through == 4


@pytest.mark.parametrize(
    "mistake", ["{turns: 0}", "{turns: 3, otherwise: later}", "{of: dreams, turns: 3}", "{}"]
)
def test_a_declaration_that_means_nothing_is_refused(tmp_path: Path, mistake: str) -> None:
    with pytest.raises(ConfigurationError, match="freshness"):
        load_domain(make_depot(tmp_path, mistake))
