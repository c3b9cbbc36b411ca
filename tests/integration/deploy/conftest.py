"""The image of the Dockerfile, built once for the tests that look at it or run containers of it."""

from __future__ import annotations

import sysconfig
from dataclasses import replace
from pathlib import Path

import pytest

from tests.integration.deploy.fixtures.bases import borrow_system
from tests.integration.deploy.fixtures.building import Building, Image
from tests.integration.deploy.fixtures.trees import Mount, Tree, demand_trees

LENT = "/var/lib/lent"
"""Where the packages of the tests' own environment stand, in place of a download."""


def _base(root: Path) -> Tree:
    tree = borrow_system(root)
    return replace(tree, mounts=(*tree.mounts, Mount(_packages(), LENT)))


def _packages() -> Path:
    return Path(sysconfig.get_path("purelib"))


def _lend_packages(image: Image, step: str) -> None:
    """Let pip find what is required installed, so that it checks the versions and downloads nothing."""
    if "--requirement" not in step:
        return
    (target,) = image.tree.root.glob("opt/parley/lib/python3*/site-packages")
    for entry in _packages().iterdir():
        ours = entry.name.startswith(("parley", "__editable__"))
        if not ours and entry.name != "__pycache__" and not (target / entry.name).exists():
            (target / entry.name).symlink_to(f"{LENT}/{entry.name}")


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    """Built over this machine's own system, with the dependencies that the tests have."""
    demand_trees()
    return Building(tmp_path_factory.mktemp("image"), _base, _lend_packages).build()


@pytest.fixture
def built(request: pytest.FixtureRequest) -> Image | None:
    """The image, or None where it cannot be built."""
    try:
        return request.getfixturevalue("image")
    except pytest.skip.Exception:
        return None
