"""Installed packages are pinned, in the image with hashes; `make audit` checks them, or reports what it
couldn't.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def pinned() -> dict[str, Requirement]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    found = [Requirement(line) for line in lines if line.strip() and not line.startswith("#")]
    names = [canonicalize_name(each.name) for each in found]
    assert len(set(names)) == len(names), "no package twice"
    return dict(zip(names, found, strict=True))


def test_every_package_is_pinned_to_one_version() -> None:
    for name, requirement in pinned().items():
        (version,) = requirement.specifier
        assert version.operator == "==", name
        assert re.fullmatch(r"[0-9][0-9a-z.+]*", version.version), name


def test_what_the_project_asks_for_is_among_them() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for entry in chain(project["dependencies"], *project["optional-dependencies"].values()):
        asked = Requirement(entry)
        if asked.name in {project["name"], "parley-client"}:
            continue
        if asked.marker is None or asked.marker.evaluate():
            known = pinned()[canonicalize_name(asked.name)]
            (version,) = known.specifier
            assert asked.specifier.contains(version.version, prereleases=True), entry


def locked() -> dict[str, tuple[str, list[str]]]:
    """Return the packages of the image: version and hashes, by name."""
    text = (ROOT / "deploy" / "locked.txt").read_text().replace("\\\n", " ")
    found = {}
    for line in text.splitlines():
        requirement, *hashes = line.split(" --hash=")
        parsed = Requirement(requirement)
        (version,) = parsed.specifier
        found[canonicalize_name(parsed.name)] = (version.version, [each.strip() for each in hashes])
    return found


def test_the_image_installs_pinned_versions_with_hashes_alone() -> None:
    ours = pinned()
    for name, (version, hashes) in locked().items():
        if name in ours:
            assert str(ours[name].specifier) == f"=={version}", name
        assert hashes, name
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", each) for each in hashes), name


def test_the_image_installs_what_the_project_asks_for_without_the_embedded_stores() -> None:
    names = {canonicalize_name(Requirement(entry).name) for entry in EXTRAS["server"]}
    stores = {canonicalize_name(Requirement(entry).name) for entry in EXTRAS["all"]} - {"parley-runtime"}

    assert names <= set(locked())
    assert not stores & set(locked())


def audit(folder: Path, day: str, **changes: object) -> subprocess.CompletedProcess[str]:
    """Audit the project's packages with a list of this day, after these changes."""
    (folder / "deploy").mkdir()
    for name in ("constraints.txt", "deploy/audit.py"):
        shutil.copy(ROOT / name, folder / name)
    stored = json.loads((ROOT / "deploy" / "advisories.json").read_text())
    (folder / "deploy" / "advisories.json").write_text(json.dumps({**stored, "taken": day, **changes}))
    command = [sys.executable, "deploy/audit.py"]
    return subprocess.run(command, cwd=folder, env={}, capture_output=True, text=True, check=False)


def test_an_audit_needs_no_network_and_says_the_day_of_its_list(tmp_path: Path) -> None:
    today = datetime.now(UTC).date().isoformat()
    done = audit(tmp_path, today)

    assert (done.returncode, done.stderr) == (0, "")
    assert f"{len(pinned())} packages, the list of {today}" in done.stdout


@pytest.mark.parametrize(
    ("advisory", "is_found"),
    [
        ({"ranges": [["0", None]], "versions": []}, True),
        ({"ranges": [["0", "9999"]], "versions": []}, True),
        ({"ranges": [["0", "0.1"], ["9999", None]], "versions": []}, False),
        ({"ranges": [], "versions": [str(pinned()["jinja2"].specifier)[2:]]}, True),
        ({"ranges": [], "versions": ["0.1"]}, False),
    ],
)
def test_an_audit_finds_what_is_known(tmp_path: Path, advisory: dict[str, object], is_found: bool) -> None:
    known = {"jinja2": [{"id": "PYSEC-1", "aliases": ["CVE-1"], **advisory}]}
    done = audit(tmp_path, datetime.now(UTC).date().isoformat(), advisories=known)

    assert done.returncode == int(is_found)
    assert ("PYSEC-1 CVE-1" in done.stdout) == is_found


def test_an_audit_fails_when_something_could_not_be_checked(tmp_path: Path) -> None:
    known = json.loads((ROOT / "deploy" / "advisories.json").read_text())["packages"]
    done = audit(tmp_path, "2020-01-01", packages=[name for name in known if name != "jinja2"])

    assert done.returncode == 2
    assert "not checked: jinja2: not in the list" in done.stderr
    assert "not checked: what became known in the" in done.stderr


@pytest.mark.slow
def test_the_bill_of_materials_names_all_that_the_image_installs() -> None:
    """The tool is downloaded."""
    environment = {**os.environ, "SSL_CERT_FILE": os.environ["PARLEY_TESTS_AUTHORITIES"]}
    subprocess.run(["make", "-s", "bom"], cwd=ROOT, env=environment, check=True)
    bill = json.loads((ROOT / "build" / "bom.json").read_text())

    assert bill["bomFormat"] == "CycloneDX"
    named = {canonicalize_name(each["name"]): each for each in bill["components"]}
    assert {name: each["version"] for name, each in named.items()} == {
        name: version for name, (version, _) in locked().items()
    }
    assert all(each["externalReferences"][0]["hashes"] for each in named.values())


@pytest.mark.slow
def test_an_audit_of_today_without_the_network_says_that_nothing_was_checked(tmp_path: Path) -> None:
    for name in ("Makefile", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    nowhere = "http://127.0.0.1:1"
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))},
        "HTTPS_PROXY": nowhere,
        "HTTP_PROXY": nowhere,
        "https_proxy": nowhere,
        "http_proxy": nowhere,
        "PIP_RETRIES": "0",
        "PIP_INDEX_URL": f"{nowhere}/simple",
        "PIP_CONFIG_FILE": os.devnull,
        "UV_HTTP_RETRIES": "0",
        "UV_NO_CACHE": "1",
        "UV_NO_CONFIG": "1",
    }
    done = subprocess.run(
        ["make", "-s", "audit-online", f"PYTHON={sys.executable}"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2
    assert "nothing was checked" in done.stderr
