"""What is installed is pinned in a form that `make audit` reads; without a network that says it looked at nothing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]


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
        if asked.name == project["name"]:
            continue
        if asked.marker is None or asked.marker.evaluate():
            known = pinned()[canonicalize_name(asked.name)]
            (version,) = known.specifier
            assert asked.specifier.contains(version.version, prereleases=True), entry


def test_an_audit_without_the_network_says_that_nothing_was_checked(tmp_path: Path) -> None:
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
    }
    done = subprocess.run(
        ["make", "-s", "audit", f"PYTHON={sys.executable}"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2
    assert "audit: nothing was checked" in done.stderr
