"""Lock data folders, and manage socket folders and `up.json`, which tells other commands the URL of `parley up`."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from orchestrator.errors import FolderInUse, Forbidden

CLOSED = 0o700
OWNERS_ONLY = 0o077  # the umask of every process that uses a data folder
_WRITABLE_BY_OTHERS = 0o022
_LONGEST_SOCKETS = 80
"""Maximum path length of a socket folder, in bytes. macOS allows 104 bytes for a socket's path."""


@contextmanager
def hold(data_dir: Path) -> Iterator[None]:
    """Lock the folder until the block ends. Create the folder if it is missing.

    The kernel releases a killed process's lock. The folder is also closed to other accounts, because it
    contains conversations.

    Raises:
        FolderInUse: another process holds the lock; the message contains its pid.
        Forbidden: another account owns the folder, or may have written to it.
    """
    data_dir.mkdir(mode=CLOSED, parents=True, exist_ok=True)
    _require_own(data_dir)
    descriptor = os.open(data_dir / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if not _lock(descriptor):
            pid = os.pread(descriptor, 32, 0).decode() or "unknown"
            raise FolderInUse(
                f"{data_dir} is in use by a running Parley (pid {pid}): stop that process, or choose another folder."
            )
        # Change the mode only while holding the lock: a running Parley may have opened the folder to a
        # PostgreSQL account.
        if data_dir.stat().st_mode & 0o777 != CLOSED:
            data_dir.chmod(CLOSED)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _require_own(data_dir: Path) -> None:
    found = data_dir.stat()
    if found.st_uid != os.geteuid():
        raise Forbidden(f"{data_dir} belongs to another account: choose a folder that you own.")
    if found.st_mode & _WRITABLE_BY_OTHERS and any(data_dir.iterdir()):
        raise Forbidden(
            f"{data_dir} is not empty, and other users can write to it: choose an empty or private folder."
        )


@contextmanager
def open_sockets(data_dir: Path, name: str) -> Iterator[Path]:
    """Yield a private folder for the sockets of the server `name`.

    The folder is inside the data folder, or temporary if that path is too long for a socket.
    """
    folder = data_dir / f"{name}.socket"
    if len(os.fsencode(folder)) > _LONGEST_SOCKETS:
        with TemporaryDirectory(prefix="parley-") as elsewhere:
            yield Path(elsewhere)
    else:
        folder.mkdir(mode=CLOSED, exist_ok=True)
        yield folder


def is_held(data_dir: Path) -> bool:
    """Return True if a running process has locked the folder."""
    try:
        descriptor = os.open(data_dir / "lock", os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        return not _lock(descriptor)
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


EVALUATIONS = "evaluations"
"""Subfolder for results of `parley eval` and `parley replay`, with one folder per domain."""


def trained_folder(data_dir: Path) -> Path:
    return data_dir / "trained"


@dataclass(frozen=True, slots=True, kw_only=True)
class UpNote:
    """The state of a running `parley up`, stored in `<data-dir>/up.json` for other commands.

    `metrics`: metrics URLs of the gateway and the workers.
    """

    url: str
    pid: int
    domain: str
    metrics: tuple[str, ...] = ()

    @staticmethod
    def path(data_dir: Path) -> Path:
        return data_dir / "up.json"

    def write(self, data_dir: Path) -> None:
        path = self.path(data_dir)
        path.unlink(missing_ok=True)
        path.touch(mode=0o600)
        path.write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, data_dir: Path) -> UpNote | None:
        try:
            noted = json.loads(cls.path(data_dir).read_bytes())
            return cls(**{**noted, "metrics": tuple(noted["metrics"])})
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None  # nothing is running here, or the note is being written
