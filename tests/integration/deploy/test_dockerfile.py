"""The image: small, with pinned parts, for an unprivileged account, without private data."""

from __future__ import annotations

import re

from tests.processes.forked import ROOT

PACKAGES = {"orchestrator", "internal_flows", "workers", "gateway", "domains", "parley"}
TEXT = (ROOT / "Dockerfile").read_text()
BUILD, FINAL = TEXT.split("\nFROM ${PYTHON_IMAGE}")[1:]


def test_the_image_is_built_in_two_stages_from_a_pinned_base() -> None:
    assert re.search(r"^ARG PYTHON_IMAGE=python:\d+\.\d+\.\d+-slim-\w+$", TEXT, re.MULTILINE)
    assert BUILD.startswith(" AS build\n")
    assert "--require-hashes" in BUILD
    assert TEXT.count("\nFROM ") == 2


def test_the_image_runs_as_an_ordinary_account_by_number() -> None:
    before, _, after = FINAL.partition("\nUSER 10001:10001\n")
    assert "--uid 10001" in before
    assert "--gid 10001" in before
    assert not re.search("^(RUN|COPY|ADD|USER) ", after, re.MULTILINE)


def test_it_has_no_tools_to_build_with_no_secrets_and_one_entry() -> None:
    assert "apt-get" not in TEXT
    assert not re.search(r"(?i)(password|secret|token|api_key)=", TEXT)
    assert not re.search("^ADD ", TEXT, re.MULTILINE)
    assert FINAL.endswith('\nENTRYPOINT ["parley"]\nCMD ["serve", "gateway"]\n')
    assert "PYTHONDONTWRITEBYTECODE=1" in FINAL


def test_the_build_is_given_the_packages_and_nothing_private() -> None:
    """Everything is ignored but what these lines name."""
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    patterns = [line for line in lines if not line.startswith("#")]
    kept = {line.removeprefix("!") for line in patterns if line.startswith("!")}
    assert patterns[0] == "*"
    assert kept == {
        *PACKAGES,
        "client",
        "deploy",
        "deploy/locked.txt",
        "LICENSE",
        "README.md",
        "pyproject.toml",
    }
    assert patterns.index("!deploy") < patterns.index("deploy/*") < patterns.index("!deploy/locked.txt")
    assert patterns[-2:] == ["**/__pycache__", "**/*.pyc"]
