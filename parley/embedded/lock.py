"""A data folder belongs to one run at a time."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from orchestrator.errors import FolderInUse


@contextmanager
def hold(data_dir: Path) -> Iterator[None]:
    """Hold the folder (made if missing) until the block ends; the kernel lets go if we are killed.

    Raises:
        FolderInUse: another process holds it; the message names its pid.
    """
    data_dir.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(data_dir / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _lock(descriptor, data_dir)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(descriptor)


def is_held(data_dir: Path) -> bool:
    """Whether a running process holds the folder."""
    try:
        descriptor = os.open(data_dir / "lock", os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(descriptor)


def _lock(descriptor: int, data_dir: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pid = os.pread(descriptor, 32, 0).decode() or "unknown"
        raise FolderInUse(
            f"{data_dir} is in use by a running Parley (pid {pid}): stop that one, or choose another folder."
        ) from None
