"""The wheels contain everything for an installation: they are built, unpacked in an empty folder and run there."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path, PurePath

import pytest

from tests.processes.forked import ROOT

BUILD = "from setuptools.build_meta import build_wheel; build_wheel({folder!r})"


def build(source: Path, into: Path) -> None:
    code = BUILD.format(folder=str(into))
    subprocess.run([sys.executable, "-c", code], cwd=source, check=True, capture_output=True)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with both wheels unpacked, built from a copy of the checkout, because builds leave files."""
    source, wheels, place = (tmp_path_factory.mktemp(name) for name in ("source", "wheels", "place"))
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    archive = subprocess.run(
        ["tar", "--create", "--null", "--files-from=-"],
        cwd=ROOT,
        input=tracked,
        capture_output=True,
        check=True,
    ).stdout
    subprocess.run(["tar", "--extract"], cwd=source, input=archive, check=True)
    build(source / "client", wheels)
    build(source, wheels)
    for wheel in wheels.glob("*.whl"):
        zipfile.ZipFile(wheel).extractall(place)
    return place


def run(installed: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(installed), "PYTHONSAFEPATH": "1"}
    return subprocess.run(
        [sys.executable, *command],
        cwd=installed,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_the_command_and_both_domains_run_from_the_wheel(installed: Path) -> None:
    where = run(
        installed, "-c", "import parley, parley_client; print(parley.__file__, parley_client.__file__)"
    )
    assert [Path(name).parents[1] for name in where.stdout.split()] == [installed, installed]

    for domain in ("travel", "analytics"):
        checked = run(installed, "-m", "parley", "domain", "check", domain)
        assert checked.returncode == 0, checked.stderr
        assert checked.stderr.splitlines()[-1] == f"{domain} is valid."


def test_the_wheel_has_the_files_that_are_not_code() -> None:
    """Migrations, statements, Redis scripts, templates, prompts, the inspector and the scaffold."""
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    packages = [name.removesuffix("*") for name in setuptools["packages"]["find"]["include"]]
    patterns = setuptools["package-data"]
    tracked = subprocess.run(
        ["git", "ls-files", *packages], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()

    def is_packed(path: PurePath) -> bool:
        package, *_ = path.parts
        inside = path.relative_to(package)
        return any(path.match(each) for each in patterns["*"]) or any(
            inside.match(each) and len(PurePath(each).parts) == len(inside.parts)
            for each in patterns.get(package, ())
        )

    assert "gateway" in patterns
    assert [name for name in tracked if not name.endswith(".py") and not is_packed(PurePath(name))] == []
