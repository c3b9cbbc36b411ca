"""The Dockerfile's steps, done one by one, end in an image whose processes need no rights and write nowhere."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.integration.deploy.building import Building, Image
from tests.integration.deploy.dockerfile import ROOT, read_dockerfile

PREPARED = ["ENV", "WORKDIR", "RUN", "COPY", "COPY", "RUN", "COPY", "RUN"]


def run(image: Image, *command: str) -> subprocess.CompletedProcess[str]:
    entered = image.enter(list(command), environment={})
    return subprocess.run(entered, capture_output=True, text=True, check=False)


def test_every_instruction_is_followed(image: Image) -> None:
    assert image.done == [instruction.name for instruction in read_dockerfile()[-1].instructions]
    assert [instruction.name for instruction in read_dockerfile()[0].instructions] == PREPARED


def test_a_step_that_fails_breaks_the_build(image: Image, tmp_path: Path) -> None:
    """What the other tests rest on."""
    (tmp_path / "Dockerfile").write_text("FROM any AS broken\nRUN test -e /opt/parley/bin/other\n")
    with pytest.raises(AssertionError, match="RUN test -e"):
        Building(tmp_path, lambda _: image.tree, lambda *_: None).build(tmp_path / "Dockerfile")


def test_the_entry_with_its_default_words_is_the_command(image: Image) -> None:
    assert (image.entry, image.command) == (["parley"], ["serve", "gateway"])
    said = run(image, *image.entry, *image.command, "--help")
    assert said.returncode == 0, said.stderr
    assert "Usage: parley serve" in said.stdout


def test_its_account_has_a_number_no_rights_and_nowhere_to_write(image: Image) -> None:
    status = run(image, "cat", "/proc/self/status").stdout
    assert "Uid:\t10001\t10001\t10001\t10001" in status
    assert "Gid:\t10001\t10001\t10001\t10001" in status
    for kind in ("CapPrm", "CapEff", "CapBnd", "CapInh", "CapAmb"):
        assert f"{kind}:\t0000000000000000" in status, kind
    assert "NoNewPrivs:\t1" in status
    for place in ("/opt/parley/here", "/opt/here", "/here", "/etc/here", "/tmp/here"):
        assert run(image, "touch", place).returncode != 0, place
    theirs = run(image, "find", "/opt/parley", "-user", "10001", "-print")
    assert (theirs.returncode, theirs.stdout) == (0, "")


def test_what_builds_stays_behind(image: Image) -> None:
    """Small: no source tree, no pip, no embedded stores; and modules are compiled, since nobody can later."""
    assert not (image.tree.root / "src").exists()
    (packages,) = image.tree.root.glob("opt/parley/lib/python3*/site-packages")
    assert not (image.tree.root / "opt/parley/bin/pip").exists()
    assert list((packages / "orchestrator" / "__pycache__").glob("settings.*.pyc"))
    assert {path.name for path in (ROOT / "orchestrator").glob("*.py")} == {
        path.name for path in (packages / "orchestrator").glob("*.py")
    }
