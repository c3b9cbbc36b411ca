"""How runs of the tests are set up: what is trained is kept, the long ones first; `tests.fixtures` has the stores."""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from xdist.remote import Producer

from tests.reporting import Reporting
from tests.scheduling import UnitScheduling, count_processes, put_long_ones_first

_TRAINED = "PARLEY_TRAINED_FOLDER"


def pytest_configure(config: pytest.Config) -> None:
    """Give all processes of all runs one folder for what is trained: a key names all that it was learnt from."""
    # Else each process of a test compiles all code for itself.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    config.pluginmanager.register(Reporting())
    config.add_cleanup(gc.unfreeze)
    if _TRAINED not in os.environ:
        folder = config.rootpath / ".tmp" / "trained"
        made = next(each for each in (folder, *folder.parents) if each.exists())
        if not os.access(made, os.W_OK):  # another account's clone, or one that it has run its tests in
            folder = Path(tempfile.mkdtemp(prefix="parley-trained-"))
            config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
        patch = pytest.MonkeyPatch()
        config.add_cleanup(patch.undo)
        patch.setenv(_TRAINED, str(folder))
    Path(os.environ[_TRAINED]).mkdir(parents=True, exist_ok=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--note-times", action="store_true", help="Note how long files took, to begin with the longest."
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    return count_processes()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> UnitScheduling:
    return UnitScheduling(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Look for no garbage while tests are collected, nor among them afterwards: they stay until the end."""
    gc.disable()
    # A process that only hands tests out would keep the others waiting until it had loaded what they need.
    if not session.config.getoption("numprocesses", default=None):
        session.config.pluginmanager.import_plugin("tests.fixtures")
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the order of the folders where one process runs all."""
    if hasattr(config, "workerinput"):
        put_long_ones_first(items)
