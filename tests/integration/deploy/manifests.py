"""Builds the overlays of k8s/ with `kubectl kustomize`, and finds its way in what comes out.

A developer without kubectl skips what needs it; the build installs it (see `.ci/run`) and insists on it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

import orjson
import pytest
import yaml

from tests.integration.deploy.dockerfile import ROOT

OVERLAYS = ("dev", "prod", "prod-rabbitmq")
OLDEST_KUSTOMIZE = 4
"""Older ones, as in Debian 12's kubernetes-client, do not know components and replacements."""

Manifest = dict[str, Any]


@cache
def build(overlay: str) -> tuple[Manifest, ...]:
    """The objects of an overlay, as `kubectl apply --kustomize` would send them."""
    program = _kubectl()
    with TemporaryDirectory() as folder:
        copy = Path(folder) / "k8s"
        shutil.copytree(ROOT / "k8s", copy)
        secrets = copy / "overlays" / "dev" / "secrets"
        subprocess.run([ROOT / "deploy" / "make-secrets.sh", secrets], check=True, capture_output=True)
        built = subprocess.run(
            [program, "kustomize", str(copy / "overlays" / overlay)],
            capture_output=True,
            text=True,
            check=False,
        )
    assert built.returncode == 0, built.stderr
    assert built.stderr == ""
    return tuple(yaml.safe_load_all(built.stdout))


@cache
def _kubectl() -> str:
    program = shutil.which("kubectl")
    if program is None:
        _give_up("kubectl is not installed")
    version = subprocess.run(
        [program, "version", "--client", "--output=json"], capture_output=True, check=True
    ).stdout
    number = re.match(r"v?(\d+)", orjson.loads(version).get("kustomizeVersion", "0"))
    if number is None or int(number[1]) < OLDEST_KUSTOMIZE:
        _give_up(f"this kubectl brings a kustomize older than {OLDEST_KUSTOMIZE}")
    return program


def _give_up(why: str) -> NoReturn:
    if os.environ.get("PARLEY_TESTS_REQUIRE_KUBECTL"):
        pytest.fail(why)
    pytest.skip(why)


def of_kind(overlay: str, *kinds: str) -> list[Manifest]:
    return [manifest for manifest in build(overlay) if manifest["kind"] in kinds]


def named(overlay: str, kind: str, name: str) -> Manifest:
    (found,) = [manifest for manifest in of_kind(overlay, kind) if manifest["metadata"]["name"] == name]
    return found


def pods(overlay: str) -> dict[str, Manifest]:
    """The pod templates, by the name of what makes the pods."""
    return {
        manifest["metadata"]["name"]: manifest["spec"]["template"]
        for manifest in of_kind(overlay, "Deployment", "Job")
    }


def containers(pod: Manifest) -> list[Manifest]:
    return [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]


def environment(overlay: str, container: Manifest) -> dict[str, str]:
    """The variables of a container, those of its ConfigMaps included."""
    found: dict[str, str] = {}
    for source in container.get("envFrom", []):
        found |= named(overlay, "ConfigMap", source["configMapRef"]["name"])["data"]
    return found | {entry["name"]: entry["value"] for entry in container.get("env", [])}
