"""The AG-UI protocol, with its own Python types and its own client in Node."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import pytest
from ag_ui.core import EventType

from parley.stack import TRAINED_FOLDER
from tests.integration.chaos.fleet import fleet
from tests.integration.front_door.agui_client import run, text_of
from tests.processes.gateway import gateway

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "agui"
WITHOUT_PACKAGES = shutil.ignore_patterns("node_modules")
TRAVEL = {"PARLEY_DOMAIN": "travel", "OPENAI_BASE_URL": ""}


@pytest.fixture(scope="module")
def url(database_url: str, module_redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the URL of a gateway with a worker of the travel domain."""
    folder = tmp_path_factory.mktemp("agui")
    stores = {"DATABASE_URL": database_url, "REDIS_URL": module_redis_url}
    with fleet(database_url, module_redis_url, folder, TRAVEL) as crew:
        crew.start(1, application="workers.app")
        with gateway({**stores, **TRAVEL}, folder / "gateway.log") as url:
            yield url


async def test_a_run_streams_text_tools_and_state(url: str) -> None:
    events = await run(url, "thread-1", "run-1", "list my bookings")
    kinds = [event.type.value for event in events]
    assert kinds[0] == "RUN_STARTED"
    assert kinds[-2:] == ["STATE_SNAPSHOT", "RUN_FINISHED"]
    assert [event.tool_call_name for event in events if event.type is EventType.TOOL_CALL_START] == [
        "booking_list"
    ]
    assert {"TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT", "TEXT_MESSAGE_END"} <= set(kinds)
    assert text_of(events) == "You have no bookings yet."
    assert events[-2].snapshot["completed"] == ["list_bookings"]
    assert events[-1].outcome.type == "success"

    again = await run(url, "thread-1", "run-1", "list my bookings")
    assert again[-2].snapshot["turn_id"] == events[-2].snapshot["turn_id"], (
        "the same run is not executed again"
    )
    nothing = await run(url, "thread 1, with spaces", "run-2")
    assert [event.type.value for event in nothing] == ["RUN_STARTED", "RUN_FINISHED"]


async def test_a_run_tells_where_the_user_is(url: str) -> None:
    place = {"timezone": "Australia/Sydney", "locale": "de-DE"}
    await run(url, "thread-5", "run-1", "hello", forwardedProps={"domain": "travel", **place})
    async with httpx.AsyncClient(base_url=url) as http:
        session = (await http.get("/v1/sessions/thread-5")).json()
    assert {name: session[name] for name in place} == place
    [status, problem] = await run(url, "thread-5", "run-2", "hello", forwardedProps={"timezone": "Mars"})
    assert (status, "timezone" in problem) == (422, True)


def install(installed: Path) -> bool:
    """Install the example's packages once for all runs. Return False if that is not possible."""
    with installed.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if installed.exists():
            return True
        with TemporaryDirectory(dir=installed.parent) as place:
            folder = shutil.copytree(EXAMPLE, Path(place, "agui"), ignore=WITHOUT_PACKAGES)
            command = ["npm", "install", "--silent", "--no-audit", "--no-fund"]
            if subprocess.run(command, cwd=folder, check=False).returncode:
                return False
            folder.rename(installed)
        return True


async def test_the_client_of_the_protocol_chats(url: str, tmp_path: Path) -> None:
    """The unmodified example: text, tools, state and an approval, with `@ag-ui/client`."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("Node and npm are not installed")
    wanted = hashlib.sha256((EXAMPLE / "package.json").read_bytes()).hexdigest()[:12]
    installed = Path(os.environ[TRAINED_FOLDER], f"agui-{wanted}")
    if not await asyncio.to_thread(install, installed):
        pytest.skip("@ag-ui/client cannot be installed: is the network there?")
    folder = shutil.copytree(EXAMPLE, tmp_path / "agui", ignore=WITHOUT_PACKAGES)
    (folder / "node_modules").symlink_to(installed / "node_modules")
    ended = await asyncio.to_thread(
        subprocess.run, ["node", "chat.mjs", url], cwd=folder, capture_output=True, text=True, timeout=120
    )
    assert ended.returncode == 0, ended.stderr
    told = ended.stdout
    assert "state:  book_flight" in told
    assert 'tool:   flight_offer {"origin":"OSL"' in told
    assert "approve approval" in told
    assert "parley: Booked" in told
    assert "done:   book_flight" in told
    assert "error:" not in told
