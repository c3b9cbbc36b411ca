"""The inspector: protected files for everyone, data for callers (RT-22)."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.inspector.page import CONTENT_SECURITY_POLICY, STATIC, GuardedFiles
from gateway.wiring import open_dependencies
from orchestrator.settings import NO_STORES, read_settings
from orchestrator.types import JsonObject
from tests.cases import for_each
from tests.unit.gateway.guarded import GuardedHouse

FILES = sorted(path.relative_to(STATIC).as_posix() for path in STATIC.rglob("*") if path.is_file())


async def test_the_page_and_its_files_are_there_for_everybody(house: GuardedHouse) -> None:
    page = await house.http.get("/")
    assert page.status_code == 200
    assert page.headers["content-security-policy"] == CONTENT_SECURITY_POLICY
    for file in FILES:
        answer = await house.http.get(f"/inspector/{file}")
        assert answer.status_code == 200, file
        assert answer.headers["content-security-policy"] == CONTENT_SECURITY_POLICY
        assert answer.headers["x-content-type-options"] == "nosniff"


async def test_a_browser_keeps_the_files_of_a_version_and_asks_again_for_those_of_another(
    house: GuardedHouse,
) -> None:
    named = re.findall(r'"/inspector/([0-9a-f]+)/([^"#]+)', (await house.http.get("/")).text)
    assert {file for _, file in named} >= {"scripts/main.js", "styles/base.css", "icon.svg"}
    (version,) = {version for version, _ in named}
    for file in FILES:
        kept = await house.http.get(f"/inspector/{version}/{file}")
        assert kept.content == (STATIC / file).read_bytes()
        assert kept.headers["content-security-policy"] == CONTENT_SECURITY_POLICY
        assert kept.headers["cache-control"] == "public, max-age=31536000, immutable"
    for path in ("/inspector/scripts/main.js", f"/inspector/{'0' * 32}/scripts/main.js", "/"):
        assert (await house.http.get(path)).headers["cache-control"] == "no-cache"


def test_the_version_is_that_of_what_the_files_hold(tmp_path: Path) -> None:
    for name in ("one.js", "other.js"):
        (tmp_path / name).write_text("1")
    before = GuardedFiles(tmp_path).version
    assert GuardedFiles(tmp_path).version == before
    (tmp_path / "other.js").write_text("2")
    assert GuardedFiles(tmp_path).version != before


def test_the_policy_allows_no_inline_code_and_no_other_host() -> None:
    directives = dict(part.split(" ", 1) for part in CONTENT_SECURITY_POLICY.split("; "))
    assert directives["default-src"] == "'none'"
    assert directives["script-src"] == directives["style-src"] == directives["connect-src"] == "'self'"
    assert "unsafe" not in CONTENT_SECURITY_POLICY
    assert "http" not in CONTENT_SECURITY_POLICY


@for_each(
    "path",
    ["..%2fpage.py", "%2e%2e/page.py", "scripts/..%2f..%2f..%2fapp.py", "nothing.js"]
    + [
        f"{'0' * 32}{rest}"
        for rest in ("", "/nothing.js", "/..%2f..%2fpage.py", "//etc/passwd", "/%2fetc/passwd")
    ],
)
async def test_nothing_else_is_served(house: GuardedHouse, path: str) -> None:
    assert (await house.http.get(f"/inspector/{path}")).status_code == 404


async def test_the_chart_script_is_made_once_and_not_sent_twice(house: GuardedHouse) -> None:
    first = await house.http.get("/inspector/charts.js", headers={"Accept-Encoding": "gzip"})
    assert first.status_code == 200
    assert first.headers["content-encoding"] == "gzip"
    assert "window.vegaEmbed=" in first.text
    plain = await house.http.get("/inspector/charts.js", headers={"Accept-Encoding": "identity"})
    assert plain.text == first.text
    again = await house.http.get("/inspector/charts.js", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


async def test_only_callers_are_told_the_facts_and_only_operators_where_flower_is(
    house: GuardedHouse,
) -> None:
    assert (await house.ask(None, "GET", "/v1/inspector")).status_code == 401
    facts = await house.ask(await house.key(operator=True), "GET", "/v1/inspector")
    assert facts.json() == {
        "tenant_id": "acme",
        "domains": ["analytics", "travel"],
        "default_domain": "travel",
        "flower_url": "http://127.0.0.1:5555",
    }
    told = await house.ask(await house.key(user="ada"), "GET", "/v1/inspector")
    assert told.json()["flower_url"] is None


RUN = "20260102-100000"
OF_ACME = {"tenant_id": "acme", "domain": "travel"}
EVALUATION = {"run": RUN, **OF_ACME, "figures": {}, "confusion": [], "outcomes": [{"turns": []}]}
REPLAY = {"replay": RUN, **OF_ACME, "different": [{"said": "yes"}]}


def keep_reports(house: GuardedHouse, folder: Path) -> None:
    """Store an evaluation and a replay, which the gateway reads."""
    (folder / "travel" / "replays").mkdir(parents=True)
    (folder / "travel" / f"{RUN}.json").write_text(json.dumps(EVALUATION))
    (folder / "travel" / "notes.json").write_text("[]")
    (folder / "travel" / "replays" / f"{RUN}.json").write_text(json.dumps(REPLAY))
    given = house.app.state.dependencies
    operations = replace(given.operations, evaluations=folder)
    house.app.state.dependencies = replace(given, operations=operations)


@pytest.mark.parametrize(
    ("kind", "report", "unlisted"),
    [("evaluations", EVALUATION, {"confusion", "outcomes"}), ("replays", REPLAY, {"different"})],
)
async def test_only_operators_of_the_tenant_read_reports(
    house: GuardedHouse, tmp_path: Path, kind: str, report: JsonObject, unlisted: set[str]
) -> None:
    """CO-6: they may contain messages of any user."""
    keep_reports(house, tmp_path)
    operator, other = await house.key(operator=True), await house.key("bolt", operator=True)
    listing, path = f"/v1/{kind}", f"/v1/{kind}/travel/{RUN}"
    listed = [{name: one for name, one in report.items() if name not in unlisted}]

    for secret in (listing, path):
        assert (await house.ask(None, "GET", secret)).status_code == 401
        assert (await house.ask(await house.key(user="ada"), "GET", secret)).status_code == 403
    for asked, found in ((listing, listed), (f"{listing}?domain=travel", listed), (path, report)):
        assert (await house.ask(operator, "GET", asked)).json() == found
    assert (await house.ask(operator, "GET", f"{listing}?domain=analytics")).json() == []
    assert (await house.ask(other, "GET", listing)).json() == []
    assert (await house.ask(other, "GET", path)).status_code == 404


@pytest.mark.parametrize("kind", ["evaluations", "replays"])
async def test_nothing_beside_reports_is_read(house: GuardedHouse, tmp_path: Path, kind: str) -> None:
    keep_reports(house, tmp_path / "kept")
    (tmp_path / "secret.json").write_text("{}")
    operator = await house.key(operator=True)

    for path in ("travel/20990101-000000", "..%2F/secret", "%2e%2e/secret", "travel/..%2f..%2fsecret"):
        assert (await house.ask(operator, "GET", f"/v1/{kind}/{path}")).status_code in {404, 422}, path
    assert (await house.ask(operator, "GET", f"/v1/{kind}?domain=..")).status_code == 422


async def test_the_folder_of_evaluations_is_a_setting(tmp_path: Path) -> None:
    settings = read_settings(**NO_STORES, PARLEY_EVALUATIONS_FOLDER=str(tmp_path))
    async with open_dependencies(settings) as dependencies:
        assert dependencies.operations.evaluations == tmp_path


def test_scripts_make_no_markup_and_load_nothing_from_elsewhere() -> None:
    """The browser would block it. The only exception empties an element."""
    for path in (STATIC / "scripts").rglob("*.js"):
        source = path.read_text(encoding="utf-8")
        found = re.findall(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|https?://[^\s\"']+", source
        )
        assert set(found) <= {"http://www.w3.org/2000/svg"}, path.name
