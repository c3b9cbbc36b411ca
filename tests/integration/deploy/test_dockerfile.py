"""The image: small, with pinned parts, for an unprivileged account, without private data."""

from __future__ import annotations

import re

from tests.integration.deploy.fixtures.dockerfile import ROOT, Stage, context_files, read_dockerfile

PACKAGES = {"orchestrator", "internal_flows", "workers", "gateway", "domains", "parley"}


def final() -> Stage:
    return read_dockerfile()[-1]


def test_bases_are_pinned_to_a_version_and_the_image_is_built_in_two_stages() -> None:
    stages = read_dockerfile()
    assert len(stages) == 2
    for stage in stages:
        assert re.search(r":\d+\.\d+\.\d+-slim-\w+$", stage.image), stage.image


def test_the_image_runs_as_an_ordinary_account_by_number() -> None:
    stage = final()
    assert stage.last("USER").value == "10001:10001"
    after = stage.instructions[stage.instructions.index(stage.last("USER")) :]
    assert not {entry.name for entry in after} & {"RUN", "COPY", "ADD"}
    making = " ".join(entry.value for entry in stage.instructions if entry.name == "RUN")
    assert "--uid 10001" in making
    assert "--gid 10001" in making


def test_it_has_no_tools_to_build_with_no_secrets_and_one_entry() -> None:
    stage = final()
    text = (ROOT / "Dockerfile").read_text()
    assert "apt-get" not in text
    assert not re.search(r"(?i)(password|secret|token|api_key)=", text)
    assert not [entry for entry in stage.instructions if entry.name == "ADD"]
    assert stage.last("ENTRYPOINT").words() == ["parley"]
    assert stage.last("CMD").words() == ["serve", "gateway"]
    assert stage.environment()["PYTHONDONTWRITEBYTECODE"] == "1"


def test_the_build_is_given_the_packages_and_nothing_private() -> None:
    given = context_files()
    assert {path.parts[0] for path in given if len(path.parts) > 1} == {*PACKAGES, "client", "deploy"}
    assert {path.name for path in given if len(path.parts) == 1} == {
        "LICENSE",
        "README.md",
        "pyproject.toml",
    }
    assert [path.as_posix() for path in given if path.parts[0] == "deploy"] == ["deploy/locked.txt"]
    assert not [path for path in given if "__pycache__" in path.parts or path.suffix == ".pyc"]
