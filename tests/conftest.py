"""Setup of test runs: shared trained models, long tests first. `tests.fixtures` has the stores."""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import certifi
import pytest
from xdist.remote import Producer

from tests.reporting import Reporting
from tests.scheduling import UnitScheduling, count_processes, put_long_ones_first

_TRAINED = "PARLEY_TRAINED_FOLDER"
_AUTHORITIES = "PARLEY_TESTS_AUTHORITIES"
"""Variable with the original value of SSL_CERT_FILE, for tests that download."""


def pytest_configure(config: pytest.Config) -> None:
    """Share one folder for trained models between all processes. Keys cover all training data."""
    # Otherwise each process of a test compiles all code again.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    config.pluginmanager.register(Reporting())
    config.add_cleanup(gc.unfreeze)
    if _TRAINED not in os.environ:
        folder = config.rootpath / ".tmp" / "trained"
        made = next(each for each in (folder, *folder.parents) if each.exists())
        if not os.access(made, os.W_OK):  # the clone or folder of another account
            folder = Path(tempfile.mkdtemp(prefix="parley-trained-"))
            config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
        patch = pytest.MonkeyPatch()
        config.add_cleanup(patch.undo)
        patch.setenv(_TRAINED, str(folder))
    Path(os.environ[_TRAINED]).mkdir(parents=True, exist_ok=True)
    if _AUTHORITIES not in os.environ:
        patch = pytest.MonkeyPatch()
        config.add_cleanup(patch.undo)
        patch.setenv(_AUTHORITIES, os.environ.get("SSL_CERT_FILE", ""))
        patch.setenv("SSL_CERT_FILE", str(_write_authority(Path(os.environ[_TRAINED]))))


def _write_authority(folder: Path) -> Path:
    """Write one certificate authority for all clients, because loading every authority takes 25 ms in each."""
    end = "-----END CERTIFICATE-----\n"
    one = Path(certifi.where()).read_text(encoding="utf-8").partition(end)[0] + end
    path = folder / "authority.pem"
    path.write_text(one[one.index("-----BEGIN") :], encoding="utf-8")
    return path


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
    """Disable garbage collection of collected tests: they stay until the end."""
    gc.disable()
    # A controller process would delay the others by loading what they need.
    if not session.config.getoption("numprocesses", default=None):
        session.config.pluginmanager.import_plugin("tests.fixtures")
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the folder order if one process runs all tests."""
    if hasattr(config, "workerinput"):
        put_long_ones_first(items)
