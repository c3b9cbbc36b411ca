"""docker-compose.yml: valid for Compose's schema and two parsers; private, ordered and repeatable."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import compose_spec
import jsonschema
import pytest
import yaml

from orchestrator.settings import Settings
from tests.integration.deploy.fixtures.compose import (
    COMPOSE_FILE,
    OURS,
    ROOT,
    as_plain_yaml,
    mounts,
    read_compose,
)

SCRAPED = ROOT / "deploy" / "prometheus" / "prometheus.yml"
SCHEMA = Path("/usr/lib/python3/dist-packages/compose/config/compose_spec.json")
"""Compose's own schema, from Debian's package docker-compose."""
NO_SECRETS = {"OPENAI_BASE_URL", "PARLEY_FLOWER_URL"}
PROGRAM = shutil.which("docker-compose")

needs_compose = pytest.mark.skipif(PROGRAM is None, reason="Debian's package docker-compose is not installed")


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    return read_compose()["services"]


@needs_compose
def test_it_follows_the_schema_of_compose() -> None:
    validator = jsonschema.Draft201909Validator(json.loads(SCHEMA.read_text()))
    assert [error.message for error in validator.iter_errors(read_compose())] == []


@needs_compose
def test_compose_itself_reads_it(tmp_path: Path) -> None:
    shutil.copy(COMPOSE_FILE, tmp_path / COMPOSE_FILE.name)
    shutil.copytree(ROOT / "deploy", tmp_path / "deploy")
    subprocess.run([tmp_path / "deploy" / "make-secrets.sh"], check=True, capture_output=True)
    assert PROGRAM is not None
    read = subprocess.run([PROGRAM, "config"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert read.returncode == 0, read.stderr
    rendered = yaml.safe_load(read.stdout)
    assert set(rendered["services"]) == set(read_compose()["services"])


def test_a_parser_of_another_make_reads_it(services: dict[str, Any]) -> None:
    parsed = compose_spec.PyCompose.from_yaml(as_plain_yaml(read_compose()))
    assert set(parsed.service_names()) == set(services)


def test_roles_are_closed_containers(services: dict[str, Any]) -> None:
    for name in OURS:
        service = services[name]
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert [entry.split(":")[0] for entry in service["tmpfs"]] == ["/tmp"], name
        assert "volumes" not in service, name


def test_images_are_pinned_and_no_secret_stands_in_the_file(services: dict[str, Any]) -> None:
    for name, service in services.items():
        assert re.search(r":v?\d+\.\d+", service["image"]), name
        for variable, value in (service.get("environment") or {}).items():
            if re.search(r"PASSWORD|BASIC_AUTH|KEY|_URL", variable) and variable not in NO_SECRETS:
                assert variable.endswith("_FILE"), f"{name}: {variable}"
                assert value.removeprefix("/run/secrets/") in mounts(service), f"{name}: {variable}"


def test_each_service_logs_in_with_the_rights_that_it_needs(services: dict[str, Any]) -> None:
    logins = {name: mounts(services[name])["database_url"] for name in OURS}
    assert logins.pop("migrate") == "owner_database_url"
    assert logins.pop("gateway") == "gateway_database_url"
    assert set(logins.values()) == {"runtime_database_url"}
    assert services["gateway"]["environment"]["PARLEY_ROW_SECURITY"] == "true"
    for name in OURS:
        assert ("owner_database_url" in mounts(services[name]).values()) is (name == "migrate"), name


def test_each_service_is_in_redis_as_what_it_is(services: dict[str, Any]) -> None:
    accounts = {name: mounts(services[name])["redis_url"] for name in OURS}
    assert accounts.pop("gateway") == "gateway_redis_url"
    assert accounts.pop("flower") == "flower_redis_url"
    assert set(accounts.values()) == {"worker_redis_url"}
    assert set(mounts(services["redis"])) == {"redis.acl", "probe_redis_url"}


def test_all_secrets_are_made_by_the_script_and_made_once(tmp_path: Path) -> None:
    script = ROOT / "deploy" / "make-secrets.sh"
    folder = tmp_path / "secrets"
    subprocess.run([script, folder], check=True, capture_output=True)
    declared = {Path(secret["file"]).name for secret in read_compose()["secrets"].values()}
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert declared <= set(before)
    assert folder.stat().st_mode & 0o077 == 0
    assert before["broker_url"] == b"", "the broker is Redis, as whoever each process is there"
    assert b"@parley-" not in before["redis.acl"], "every account has its password"

    subprocess.run([script, folder], check=True, capture_output=True)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before

    other = tmp_path / "other"
    subprocess.run([script, "--rabbitmq", other], check=True, capture_output=True)
    assert (other / "broker_url").read_bytes().startswith(b"amqp://parley:")
    assert (other / "worker_redis_password").read_bytes() != before["worker_redis_password"]


def test_nothing_starts_before_the_schema_is_there(services: dict[str, Any]) -> None:
    for name in ("gateway", "turns", "submissions", "internal", "beat", "flower"):
        needed = services[name]["depends_on"]
        assert needed["migrate"]["condition"] == "service_completed_successfully", name
        assert needed["postgres"]["condition"] == needed["redis"]["condition"] == "service_healthy", name
        assert services[name]["healthcheck"]["test"] == ["CMD", "python", "-m", "parley.probe", name]
    assert services["migrate"]["restart"] == "no"


def test_a_worker_that_is_stopped_has_longer_than_a_turn_may_take(services: dict[str, Any]) -> None:
    for name in ("turns", "internal"):
        environment = services[name]["environment"]
        grace_s = float(environment["PARLEY_SHUTDOWN_GRACE_S"])
        assert float(environment["PARLEY_TURN_DEADLINE_S"]) < grace_s
        assert grace_s < int(services[name]["stop_grace_period"].removesuffix("s"))


def test_every_variable_of_ours_is_a_setting(services: dict[str, Any]) -> None:
    known = {str(field.alias) for field in Settings.model_fields.values()}
    known |= {f"{name}_FILE" for name in known} | {"PARLEY_HOST", "PARLEY_AUTH", "FLOWER_BASIC_AUTH_FILE"}
    for name in OURS:
        assert set(services[name]["environment"]) <= known, name


def test_stores_are_reached_from_inside_only(services: dict[str, Any]) -> None:
    assert read_compose()["networks"]["stores"] == {"internal": True}
    for name in ("postgres", "redis", "rabbitmq"):
        assert services[name]["networks"] == ["stores"], name
        assert "ports" not in services[name], name
    published = [port for service in services.values() for port in service.get("ports", [])]
    assert all(port.startswith("127.0.0.1:") for port in published)


def test_images_of_others_name_a_version_and_are_the_same_on_kubernetes(services: dict[str, Any]) -> None:
    """A release line tag gets fixes; a digest would keep old bugs."""
    images = {name: one["image"] for name, one in services.items() if name not in OURS}
    for image in images.values():
        assert re.search(r":v?\d+\.\d+(\.\d+)?(-[a-z0-9]+)?$", image), image
    text = (ROOT / "k8s" / "overlays" / "dev" / "stores.yaml").read_text()
    assert set(re.findall(r"image: (\S+)", text)) == {images["postgres"], images["redis"]}


def test_prometheus_scrapes_every_role_that_tells_metrics() -> None:
    told = {
        name
        for name, one in read_compose()["services"].items()
        if "PARLEY_METRICS_PORT" in one.get("environment", {})
    }
    scraped = {job["job_name"] for job in yaml.safe_load(SCRAPED.read_text())["scrape_configs"]}
    assert told
    assert scraped == told | {"gateway"}
