"""All commands of docker-compose.yml as processes, with the variables and secrets of the file."""

from __future__ import annotations

from pathlib import Path

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


def container(name: str, secrets: Path, folder: Path) -> Container:
    """Return the container with exactly its secrets from the file."""
    service = read_compose()["services"][name]
    own = mounted(secrets, mounts(service), folder / "mounted" / name)
    environment = {key: str(value) for key, value in service["environment"].items() if value is not None}
    return Container(name, service["command"], environment, own, folder)


def test_a_deployment_comes_up_answers_is_diagnosed_and_stops(database_url: str, tmp_path: Path) -> None:
    """Start in the order of the file, one turn, the doctor, and stop."""
    secrets, services = make_secrets(tmp_path), read_compose()["services"]
    with stores_for(database_url, secrets, tmp_path) as users:
        containers = {name: container(name, secrets, tmp_path) for name in OURS}
        roles = {name: containers[name] for name in ROLES}

        def is_ready(name: str) -> bool:
            return roles[name].check(services[name]["healthcheck"]["test"][1:]) == 0

        checked = ("migrate", "--check")  # init containers of pods wait with this command
        assert containers["turns"].run(*checked).returncode != 0, "the schema is not there yet"
        migrated = containers["migrate"].run()
        assert migrated.returncode == 0, migrated.stderr
        assert containers["turns"].run(*checked).returncode == 0
        with ended(containers):
            bring_up(roles, is_ready)
            talk(roles["gateway"], owner=containers["migrate"])
            await_users(database_url, users)
            be_diagnosed(containers["doctor"], users["runtime"])
            stop_all(roles)
