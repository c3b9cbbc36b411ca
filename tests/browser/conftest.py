"""One real stack and one headless Chromium for all tests of the inspector."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, Playwright, ViewportSize, sync_playwright

from parley.embedded.postgres import running_database
from parley.embedded.redis import running_redis
from parley.testing.scripted_model import Answer, Computed, Request, Rule, Script, ScriptedModel
from tests.browser.steps import LONGEST_WAIT_MS, Visit
from tests.processes.forked import run, user_environment
from tests.processes.gateway import gateway, stack

ROOT = Path(__file__).parents[2]
GALLERY = ROOT / "tests" / "domains" / "gallery"
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"),
    # A single process draws all pages, instead of an additional process for each site and a spare process.
    *("--renderer-process-limit=1", "--disable-site-isolation-trials", "--in-process-gpu"),
    "--disable-features=SpareRendererForSitePerProcess,IsolateOrigins,site-per-process",
]
WINDOW: ViewportSize = {"width": 1440, "height": 900}
OPENS_A_STREAM = "In room 1 "


def find_chromium() -> str | None:
    """Return the configured browser, else the headless shell, else a full Chromium."""
    known = map(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser"))
    return os.environ.get("PARLEY_CHROMIUM") or next(filter(None, known), None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests with a clear reason if no browser is installed."""
    if find_chromium() is not None:
        return
    reason = "No Chromium here: install Debian's package `chromium-headless-shell`, or name one by PARLEY_CHROMIUM."
    for item in items:
        if item.nodeid.startswith("tests/browser/"):
            item.add_marker(pytest.mark.skip(reason=reason))


def _say_it_again(request: Request) -> Answer:
    """Repeat the input, a long text slowly, like a model."""
    draft = str(request.data["draft"])
    return Answer(text=draft, piece_delay_s=0.02 if draft.startswith(OPENS_A_STREAM) else 0.0)


def _environment(model: ScriptedModel) -> dict[str, str]:
    endpoints = json.dumps({"scripted": {"base_url": model.base_url, "api_key": "none"}})
    return user_environment(PARLEY_MODEL_ENDPOINTS=endpoints)


@pytest.fixture(scope="package")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the stack's data folder."""
    return tmp_path_factory.mktemp("inspector") / "data"


@pytest.fixture(scope="package")
def address(folder: Path) -> Iterator[str]:
    """Return the inspector's address as printed by `parley up`."""
    script = Script(rules=(Rule(prompt="res_naturalize", replies=(Computed(_say_it_again),)),))
    with (
        ScriptedModel(script) as model,
        stack(folder, _environment(model), "--domain", str(GALLERY)) as (up, said),
    ):
        yield next(line.split()[1] for line in said.splitlines() if line.startswith("Inspector")).rstrip("/")
    assert up.wait() == 0


@dataclass(frozen=True, slots=True)
class Guarded:
    """A second gateway of the same stack, which requires keys."""

    address: str
    environment: dict[str, str]

    def make_key(self, *options: str) -> str:
        command = ("-m", "parley", "keys", "create", "browser", *options)
        return run(command, environment=self.environment).stdout.strip()


@pytest.fixture(scope="package")
def guarded(address: str, folder: Path) -> Iterator[Guarded]:
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "DATABASE_URL": running_database(folder) or "",
        "REDIS_URL": running_redis(folder) or "",
        "PARLEY_DOMAIN": str(GALLERY),
        "PARLEY_OWNER_ONLY": "true",
        "PARLEY_FLOWER_URL": "http://127.0.0.1:5555",
        "PARLEY_AUTH": "required",
    }
    with gateway(environment, folder / "guarded.log") as url:
        yield Guarded(url, environment)


@pytest.fixture(scope="package")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="package")
def browser(playwright: Playwright) -> Iterator[Browser]:
    chromium = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
    yield chromium
    chromium.close()


@pytest.fixture(scope="package")
def api(address: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=address, timeout=60) as client:
        yield client


@pytest.fixture(scope="package")
def _visits(browser: Browser) -> list[Visit]:
    """Return the pages that the tests have opened so far."""
    return []


@pytest.fixture(scope="package")
def _context(browser: Browser) -> Iterator[BrowserContext]:
    context = browser.new_context(viewport=WINDOW, reduced_motion="reduce")
    context.set_default_timeout(LONGEST_WAIT_MS)
    yield context
    context.close()


@pytest.fixture
def visit(
    _context: BrowserContext, _visits: list[Visit], address: str, api: httpx.Client
) -> Iterator[Callable[..., Visit]]:
    """Open the inspector. Afterwards, no page may have an error.

    All tests use the same pages, empty and without stored data, because a new page costs more than most
    tests.
    """
    opened: list[Visit] = []

    def open_page(
        *, viewport: ViewportSize = WINDOW, color_scheme: Literal["light", "dark"] = "light"
    ) -> Visit:
        if len(opened) == len(_visits):
            _visits.append(Visit(_context.new_page(), address, api))
        here = _visits[len(opened)]
        # A full Chromium hardly draws background tabs.
        here.page.bring_to_front()
        here.page.set_viewport_size(viewport)
        here.page.emulate_media(color_scheme=color_scheme)
        opened.append(here)
        return here

    yield open_page
    for here in opened:
        here.leave()
    wrong = [here.complaints + here.strangers for here in opened]
    for here in opened:
        here.begin_anew(address)
    assert not any(wrong), wrong
