"""The Dockerfile's steps, done one by one, end in an image; every command of docker-compose.yml is run.

With the variables and secrets that the file gives it; in the image as its account, where nothing but /tmp can be
written, the long form all of them, the short form those of `IN_IMAGE`: each interpreter imports for three seconds.
The others, and all where this machine has no trees, are run as processes.
"""

from __future__ import annotations

import subprocess
from collections.abc import Collection
from pathlib import Path

import pytest

from tests.integration.deploy.fixtures.bases import install_system
from tests.integration.deploy.fixtures.building import Building, Image
from tests.integration.deploy.fixtures.compose import OURS, mounts, read_compose
from tests.integration.deploy.fixtures.containers import Container, ended
from tests.integration.deploy.fixtures.deployment import (
    ROLES,
    await_users,
    be_diagnosed,
    bring_up,
    make_secrets,
    mounted,
    stop_all,
    stores_for,
    talk,
)
from tests.integration.deploy.fixtures.dockerfile import ROOT, read_dockerfile
from tests.integration.deploy.fixtures.trees import demand_trees

IN_IMAGE = ("migrate", "gateway", "turns")
"""What makes keys and the schema, what answers, and what works."""
PREPARED = ["ENV", "WORKDIR", "RUN", "COPY", "RUN", "COPY", "RUN", "RUN"]


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


def test_what_processes_would_else_train_is_in_it(image: Image) -> None:
    assert list(image.tree.root.glob("opt/parley/trained/*.npz"))


def test_what_builds_stays_behind(image: Image) -> None:
    """Small: no source tree, no pip, no embedded stores; and modules are compiled, since nobody can later."""
    assert not (image.tree.root / "src").exists()
    (packages,) = image.tree.root.glob("opt/parley/lib/python3*/site-packages")
    assert not (image.tree.root / "opt/parley/bin/pip").exists()
    assert list((packages / "orchestrator" / "__pycache__").glob("errors.*.pyc"))
    assert {path.name for path in (ROOT / "orchestrator").glob("*.py")} == {
        path.name for path in (packages / "orchestrator").glob("*.py")
    }


def container(name: str, secrets: Path, folder: Path, image: Image | None) -> Container:
    """With the secrets that the file gives this one, and no others."""
    service = read_compose()["services"][name]
    own = mounted(secrets, mounts(service), folder / "mounted" / name)
    environment = {key: str(value) for key, value in service["environment"].items() if value is not None}
    return Container(name, service["command"], environment, own, folder, image)


def go_through(database_url: str, folder: Path, image: Image | None, within: Collection[str] = OURS) -> None:
    """Up in the order of the file, one turn, the doctor, and down. `within`: which containers are run in the image."""
    secrets, services = make_secrets(folder), read_compose()["services"]
    with stores_for(database_url, secrets, folder) as users:
        containers = {
            name: container(name, secrets, folder, image if name in within else None) for name in OURS
        }
        roles = {name: containers[name] for name in ROLES}

        def is_ready(name: str) -> bool:
            return roles[name].check(services[name]["healthcheck"]["test"][1:]) == 0

        migrated = containers["migrate"].run()
        assert migrated.returncode == 0, migrated.stderr
        assert containers["migrate"].run().returncode == 0, "a second time changes nothing"
        with ended(containers):
            bring_up(roles, is_ready)
            talk(roles["gateway"], owner=containers["migrate"])
            await_users(database_url, users)
            be_diagnosed(containers["doctor"], users["runtime"])
            stop_all(roles)


def test_a_deployment_comes_up_answers_is_diagnosed_and_stops(
    database_url: str, tmp_path: Path, built: Image | None
) -> None:
    go_through(database_url, tmp_path, built, IN_IMAGE)


@pytest.mark.slow
def test_so_does_one_of_the_image_alone(database_url: str, tmp_path: Path, image: Image) -> None:
    go_through(database_url, tmp_path, image)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_so_does_one_whose_image_stands_on_a_bare_system_with_every_package_downloaded(
    database_url: str, tmp_path: Path
) -> None:
    """The long form of the build: a minimal Debian, and pip with the machine's configuration."""
    demand_trees()
    with Building.within(tmp_path, install_system) as building:
        image = building.build()
        (packages,) = image.tree.root.glob("opt/parley/lib/python3*/site-packages")
        assert not list(packages.glob("pixeltable*")) + list(packages.glob("valkey*"))
        go_through(database_url, tmp_path, image)
