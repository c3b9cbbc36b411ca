"""All commands of k8s/ with our image: the Job, the init containers, the roles, their probes and hooks."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from parley.stack import answers
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
from tests.integration.deploy.fixtures.manifests import Manifest, containers, environment, pods

OVERLAY = "prod"
PROBES = ("startupProbe", "livenessProbe", "readinessProbe")


@dataclass
class Pods:
    """The pods of an overlay, with the Secret's files in `secrets`. `run`: the commands that were run."""

    secrets: Path
    folder: Path
    run: set[tuple[str, ...]] = field(default_factory=set)

    def container(self, pod: str, number: int = -1) -> Container:
        """Return a container with exactly its pod's mounts. Init containers come first."""
        template = pods(OVERLAY)[f"parley-{pod}"]
        described = containers(template)[number]
        (items,) = [volume["secret"]["items"] for volume in template["spec"]["volumes"] if "secret" in volume]
        name = f"{pod}-{described['name']}"
        own = mounted(
            self.secrets, {item["path"]: item["key"] for item in items}, self.folder / "mounted" / name
        )
        command = described["args"] if "args" in described else described["command"]
        self.run.add(tuple(command))
        return Container(name, command, environment(OVERLAY, described), own, self.folder)

    def passes(self, container: Container, probe: Manifest) -> bool:
        """Return a probe's result as a kubelet decides it, with the failure threshold of the manifest."""
        return any(self.answers(container, probe) for _ in range(probe.get("failureThreshold", 3)))

    def answers(self, container: Container, probe: Manifest) -> bool:
        if "exec" in probe:
            self.run.add(tuple(probe["exec"]["command"]))
            return container.check(probe["exec"]["command"]) == 0
        self.run.add((probe["httpGet"]["path"],))
        return answers(f"http://127.0.0.1:{container.port}{probe['httpGet']['path']}")("")


def described_commands() -> set[tuple[str, ...]]:
    """Return all commands of our image in the manifests: containers, probes and hooks."""
    found: set[tuple[str, ...]] = set()
    for name, pod in pods(OVERLAY).items():
        for container in containers(pod) if name.startswith("parley-") else []:
            found.add(tuple(container["args"] if "args" in container else container["command"]))
            hook = container.get("lifecycle", {}).get("preStop")
            for entry in [
                *(container[probe] for probe in PROBES if probe in container),
                *([hook] if hook else []),
            ]:
                found.add(tuple(entry["exec"]["command"]) if "exec" in entry else (entry["httpGet"]["path"],))
    return found


@pytest.mark.slow
def test_the_pods_come_up_in_order_are_probed_answer_and_stop(database_url: str, tmp_path: Path) -> None:
    secrets = make_secrets(tmp_path)
    with stores_for(database_url, secrets, tmp_path) as users:
        kept = Pods(secrets, tmp_path)
        roles = {name: kept.container(name) for name in ROLES}
        described = {name: containers(pods(OVERLAY)[f"parley-{name}"])[-1] for name in ROLES}

        first = kept.container("turns", 0)
        assert first.run("migrate", "--check").returncode != 0, "the schema is not there yet"
        migrated = kept.container("migrate").run()
        assert migrated.returncode == 0, migrated.stderr
        for waiting in (first, kept.container("gateway", 0)):  # the others log in like the first
            waited = waiting.run()
            assert waited.returncode == 0, waited.stderr

        def is_ready(name: str) -> bool:
            return kept.answers(roles[name], described[name]["readinessProbe"])

        console = kept.container("console")
        with ended(roles):
            bring_up(roles, is_ready)
            for name in ROLES:
                for probe in PROBES:
                    assert kept.passes(roles[name], described[name][probe]), f"{name}: {probe}"
            talk(roles["gateway"], owner=console)
            await_users(database_url, users)
            be_diagnosed(roles["internal"], users["runtime"])

            hook = described["gateway"]["lifecycle"]["preStop"]["exec"]["command"]
            assert roles["gateway"].check(hook) == 0
            kept.run.add(tuple(hook))
            stop_all(roles)
    assert kept.run == described_commands(), "a command of the manifests was not run here"
