"""NL-1: commands for developers work only in development."""

import shutil
from pathlib import Path

import pytest

from orchestrator.bootstrap import AgentCatalogue, build_agent, open_lane, open_ports
from orchestrator.runtime.lane import LaneRunner
from orchestrator.settings import Settings, read_settings
from orchestrator.types import DEFAULT_TENANT, JsonObject, SessionId
from tests.conversation import WITHIN_S, submit
from tests.integration.chaos.fleet import ROOT

COMMAND = '\ncommands:\n  - {pattern: "/debug", flow: list_shelves, development: true}\n'


@pytest.fixture
def domain(tmp_path: Path) -> str:
    folder = tmp_path / "depot"
    shutil.copytree(ROOT / "tests" / "domains" / "depot", folder)
    with (folder / "domain.yaml").open("a") as file:
        file.write(COMMAND)
    return str(folder)


@pytest.mark.parametrize(("development", "completed"), [(True, ["list_shelves"]), (False, [])])
async def test_a_developers_command_needs_the_setting(
    development: bool, completed: list[str], domain: str, database_url: str, redis_url: str
) -> None:
    settings = read_settings(
        DATABASE_URL=database_url,
        REDIS_URL=redis_url,
        PARLEY_DOMAIN=domain,
        PARLEY_DEVELOPMENT=str(development),
    )

    answer = await _say(settings, f"development-{development}", "/debug")

    assert answer["completed"] == completed


async def _say(settings: Settings, session: str, text: str) -> JsonObject:
    async with open_ports(settings) as ports, open_lane(ports) as lane:
        receipt = await submit(ports, session, text)
        agents = AgentCatalogue(build_agent, ports)
        await LaneRunner(lane, ports.shared.live, ports.shared.wakeup, agents.get).run(SessionId(session))
        turn = await ports.waiter(DEFAULT_TENANT, SessionId(session), receipt.turn_id, WITHIN_S)
    assert turn.result is not None, turn
    return turn.result
