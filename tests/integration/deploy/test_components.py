"""k8s/components and k8s/examples: custom domains by image and by volume, and access to tools."""

from __future__ import annotations

import shutil
from pathlib import Path

import kubernetes_validate
import pytest

from tests.integration.deploy.fixtures.manifests import Manifest, allowances, build_folder
from tests.processes.forked import ROOT

READ_A_DOMAIN = ("gateway", "turns", "submissions", "internal", "beat")


def deployments(manifests: tuple[Manifest, ...]) -> dict[str, Manifest]:
    found = (one for one in manifests if one["kind"] == "Deployment")
    return {one["metadata"]["name"]: one["spec"]["template"]["spec"] for one in found}


def domain_of(manifests: tuple[Manifest, ...]) -> str:
    (told,) = [
        one["data"] for one in manifests if one["kind"] == "ConfigMap" and "PARLEY_DOMAIN" in one["data"]
    ]
    return told["PARLEY_DOMAIN"]


@pytest.fixture
def clinic() -> tuple[Manifest, ...]:
    return build_folder(ROOT / "k8s", "examples/clinic")


def overlay_with(component: str, folder: Path) -> tuple[Manifest, ...]:
    copy = folder / "k8s"
    shutil.copytree(ROOT / "k8s", copy)
    (copy / "mine").mkdir()
    lines = ["resources: [../overlays/prod]", f"components: [../components/{component}]"]
    (copy / "mine" / "kustomization.yaml").write_text("\n".join(lines))
    return build_folder(copy, "mine")


def test_an_image_of_two_lines_brings_a_domain(clinic: tuple[Manifest, ...]) -> None:
    """Every process loads the domain that the image copies, and all processes run this image."""
    lines = (ROOT / "k8s/examples/clinic/Dockerfile").read_text().splitlines()
    assert [line.split()[0] for line in lines] == ["FROM", "COPY"]
    assert lines[1].split()[2] == domain_of(clinic) == "/domains/clinic"
    for name, pod in deployments(clinic).items():
        images = {one["image"] for one in (*pod.get("initContainers", ()), *pod["containers"])}
        assert images == {"registry.example.com/clinic:1.0"}, name
    for manifest in clinic:
        if "." not in manifest["apiVersion"].partition("/")[0] or ".k8s.io/" in manifest["apiVersion"]:
            kubernetes_validate.validate(manifest, "1.35", strict=True)


def test_a_volume_brings_a_domain_to_every_role_that_reads_one(tmp_path: Path) -> None:
    found = deployments(overlay_with("domain-volume", tmp_path))
    having = {
        name
        for name, pod in found.items()
        if {"name": "domains", "mountPath": "/domains", "readOnly": True}
        in pod["containers"][0]["volumeMounts"]
        and {"name": "domains", "persistentVolumeClaim": {"claimName": "parley-domains", "readOnly": True}}
        in pod["volumes"]
    }
    assert having == {f"parley-{role}" for role in READ_A_DOMAIN}


def test_tools_in_the_cluster_are_reached_by_those_who_run_turns_alone(clinic: tuple[Manifest, ...]) -> None:
    allowed = allowances(clinic, "egress")
    assert {pods for pods, targets in allowed.items() if ("allowed in all", "8080") in targets} == {
        "internal,turns"
    }
    assert {port for targets in allowed.values() for peer, port in targets if peer == "allowed in all"} == {
        "8080"
    }
