"""`make release`: one version everywhere, a dated changelog, a commit and a tag."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.release import VERSIONED
from tests.processes.forked import ROOT

AUTHOR = {
    f"GIT_{who}_{what}": f"{what}@example.com"
    for who in ("AUTHOR", "COMMITTER")
    for what in ("NAME", "EMAIL")
}


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **AUTHOR, "GIT_CONFIG_GLOBAL": os.devnull}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name in (*VERSIONED, "CHANGELOG.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    changelog = tmp_path / "CHANGELOG.md"
    changelog.write_text(changelog.read_text().replace("\n## [", "\n## [7.8.9] - unreleased\n\n## [", 1))
    run(tmp_path, "git", "init", "--quiet")
    run(tmp_path, "git", "add", "--all")
    run(tmp_path, "git", "commit", "--quiet", "--message", "Add everything")
    return tmp_path


def release(folder: Path, version: str) -> subprocess.CompletedProcess[str]:
    return run(folder, sys.executable, str(ROOT / "deploy" / "release.py"), version)


def test_a_release_sets_the_version_everywhere_and_is_tagged(checkout: Path) -> None:
    done = release(checkout, "7.8.9")

    assert (done.returncode, done.stderr) == (0, "")
    assert all("7.8.9" in (checkout / name).read_text() for name in VERSIONED)
    assert "## [7.8.9] - unreleased" not in (checkout / "CHANGELOG.md").read_text()
    assert run(checkout, "git", "describe", "--exact-match").stdout == "v7.8.9\n"
    assert run(checkout, "git", "status", "--porcelain").stdout == ""


def test_a_release_needs_a_version_a_clean_checkout_and_a_changelog(checkout: Path) -> None:
    assert "is not a version" in release(checkout, "next").stderr
    assert "CHANGELOG.md has no section" in release(checkout, "9.9.9").stderr
    (checkout / "pyproject.toml").write_text("")
    assert "uncommitted changes" in release(checkout, "7.8.9").stderr
    assert run(checkout, "git", "tag").stdout == ""
