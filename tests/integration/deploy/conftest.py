"""The image of the Dockerfile, built once for the tests that look at it or run containers of it."""

from __future__ import annotations

import os
import re
import shutil
import sysconfig
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.adapters.models.trained_files import SUFFIX
from orchestrator.bootstrap import load_domain
from orchestrator.nlu.readers.system1 import System1
from parley.stack import TRAINED_FOLDER
from tests.integration.deploy.fixtures.bases import borrow_system
from tests.integration.deploy.fixtures.building import Building, Image
from tests.integration.deploy.fixtures.trees import Mount, Tree, demand_trees

LENT = "/var/lib/lent"
"""Where the packages of the tests' own environment stand, in place of a download."""
QUICKER = {"PIP_NO_BUILD_ISOLATION": "0", "PIP_NO_DEPS": "1", "PIP_NO_COMPILE": "0"}
"""Nothing that builds is downloaded, nothing else than what is listed is looked for, and `compileall` alone compiles.

Where pip's option is a "no" of its own, "0" is what turns it on."""
TRAINS = re.compile(r"domain train (.+) --into (\S+)")


def _base(root: Path) -> Tree:
    tree = borrow_system(root)
    return replace(tree, mounts=(*tree.mounts, Mount(_packages(), LENT)))


def _packages() -> Path:
    return Path(sysconfig.get_path("purelib"))


def _lend(image: Image, step: str) -> None:
    """Let a step find what it would else download or train: each still says what it wants, and checks what it finds."""
    if "--requirement" in step:
        _lend_packages(image)
    if trains := TRAINS.search(step):
        _lend_trained(image, trains[1].split(), trains[2])


def _lend_packages(image: Image) -> None:
    (target,) = image.tree.root.glob("opt/parley/lib/python3*/site-packages")
    for entry in _packages().iterdir():
        ours = entry.name.startswith(("parley", "__editable__"))
        if not ours and entry.name != "__pycache__" and not (target / entry.name).exists():
            (target / entry.name).symlink_to(f"{LENT}/{entry.name}")


def _lend_trained(image: Image, domains: list[str], folder: str) -> None:
    for domain in domains:  # unless another test has
        System1.for_domain(load_domain(domain).domain)
    place = image.tree.root / folder.lstrip("/")
    place.mkdir()
    for path in Path(os.environ[TRAINED_FOLDER]).glob(f"*{SUFFIX}"):
        shutil.copy(path, place)


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    """Built over this machine's own system, with the dependencies that the tests have."""
    demand_trees()
    return Building(tmp_path_factory.mktemp("image"), _base, _lend, **QUICKER).build()


@pytest.fixture
def built(request: pytest.FixtureRequest) -> Image | None:
    """The image, or None where it cannot be built."""
    try:
        return request.getfixturevalue("image")
    except pytest.skip.Exception:
        return None
