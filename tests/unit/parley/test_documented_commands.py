"""Commands in the documentation, alerts and manifests, which must exist as written."""

from __future__ import annotations

import re

import pytest
import yaml

from tests.cases import for_each
from tests.unit.parley.documented import ROOT, complaint, documented

SERVICES = set(yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"])
OPERATE = (ROOT / "docs" / "operate.md").read_text(encoding="utf-8")


def test_every_command_of_ours_is_one() -> None:
    commands = documented("parley")
    assert len(commands) > 60
    wrong = [f"{command}: {said}" for command in commands if (said := complaint(command.words))]
    assert wrong == []


@for_each(
    "words",
    [
        ("parley", "webhooks", "failing"),
        ("parley", "doctor", "--pre-flight"),
        ("parley", "nonsense"),
        ("parley", "turns", "list", "--status=running", "--everything"),
    ],
)
def test_a_command_that_is_not_there_would_be_found(words: tuple[str, ...]) -> None:
    assert complaint(words) is not None


def test_every_target_of_make_is_one() -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for command in documented("make"):
        named = [word for word in command.words[1:] if not word.startswith("-") and "=" not in word]
        assert set(named) <= targets, command


def test_every_service_that_compose_is_asked_for_is_in_its_file() -> None:
    commands = [command for command in documented("docker") if command.words[1] == "compose"]
    assert commands
    for command in commands:
        words = list(command.words[2:])
        verb = next(word for word in words if not word.startswith("-"))
        named = [word for word in words[words.index(verb) + 1 :] if not word.startswith("-")]
        match verb:
            case "run" | "exec" | "logs":
                assert named[0] in SERVICES, command
            case "stop" | "start" | "restart" | "up" | "pull" | "build":
                scaled = {word.partition("=")[0] for word in named if "=" in word}
                assert {word for word in named if "=" not in word} | scaled <= SERVICES, command
            case "ps" | "down" | "config":
                assert not named, command
            case other:
                pytest.fail(f"{command}: {other} is not looked at here")


def test_every_object_that_kubectl_is_asked_for_is_in_the_manifests() -> None:
    documents = [
        document
        for folder in ("base", "components")
        for path in (ROOT / "k8s" / folder).rglob("*.yaml")
        for document in yaml.safe_load_all(path.read_text())
        if path.name != "kustomization.yaml"
    ]
    defined = {f"{document['kind'].lower()}/{document['metadata']['name']}" for document in documents}
    short = {"deploy": "deployment", "service": "service", "job": "job", "scaledobject": "scaledobject"}
    commands = documented("kubectl")
    assert commands
    for command in commands:
        for word in command.words:
            kind, slash, name = word.partition("/")
            if slash and kind in short:
                assert f"{short[kind]}/{name}" in defined, command
            if word.startswith("k8s/"):
                assert (ROOT / word).exists(), command


def test_every_line_of_a_log_that_is_named_is_written_by_somebody() -> None:
    told = OPERATE + (ROOT / "deploy" / "prometheus" / "alerts.yml").read_text()
    lines = set(re.findall(r"`([A-Z][a-z][^`]*\.)`", told))
    assert lines
    packages = ("orchestrator", "internal_flows", "workers", "gateway", "parley")
    sources = "".join(path.read_text() for name in packages for path in (ROOT / name).rglob("*.py"))
    assert {line for line in lines if f'"{line}"' not in sources} == set()
