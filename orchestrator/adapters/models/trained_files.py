"""A folder of trained models. Files that accounts other than root and this process's could have written are ignored.

Several processes can share the folder, because files are written atomically. A read-only folder, for example in a
container image, also works: its files are only read.
"""

import os
import stat
import tempfile
from pathlib import Path

from orchestrator.errors import Unavailable
from orchestrator.telemetry import get_logger

SUFFIX = ".npz"
KEPT_AT_MOST = 200
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
_ROOT = 0

_log = get_logger(__name__)


class TrainedFiles:
    """A `TrainedModels` in a folder that is created on first use."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def require_writable(self) -> None:
        """Create the folder, for callers that only fill it. Raise Unavailable if it is not writable."""
        try:
            self._folder.mkdir(mode=0o755, parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self._folder):
                pass
        except OSError as error:
            raise Unavailable(f"Can't write to {self._folder}: {error}") from error

    def get(self, key: str) -> bytes | None:
        path = self._path(key)
        try:
            with path.open("rb") as file:
                if not _is_trusted(os.fstat(file.fileno())):
                    _log.warning(
                        "Ignoring a trained model that other users could have written.", path=str(path)
                    )
                    return None
                return file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            _log.warning("Could not read a trained model.", path=str(path), error=error)
            return None

    def put(self, key: str, content: bytes) -> None:
        try:
            self._folder.mkdir(mode=0o755, parents=True, exist_ok=True)
            self._write(self._path(key), content)
            self._remove_oldest()
        except OSError as error:
            _log.info("Could not store a trained model.", folder=str(self._folder), error=error)

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}{SUFFIX}"

    def _write(self, path: Path, content: bytes) -> None:
        handle, unfinished = tempfile.mkstemp(dir=self._folder, prefix=".unfinished-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                os.fchmod(file.fileno(), 0o644)
            Path(unfinished).replace(path)
        except BaseException:
            Path(unfinished).unlink(missing_ok=True)
            raise

    def _remove_oldest(self) -> None:
        """Remove the oldest models beyond `KEPT_AT_MOST`, usually from earlier versions of domains."""
        kept = sorted(self._folder.glob(f"*{SUFFIX}"), key=_written_at, reverse=True)
        for path in kept[KEPT_AT_MOST:]:
            path.unlink(missing_ok=True)


def _is_trusted(found: os.stat_result) -> bool:
    return found.st_uid in {os.geteuid(), _ROOT} and not found.st_mode & _OTHERS_MAY_WRITE


def _written_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0  # another process has removed the file
