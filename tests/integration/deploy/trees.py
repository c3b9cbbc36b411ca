"""A folder that a process takes for the whole machine: entered as any account, read-only but for what is mounted.

This is what `unshare`, `mount`, `chroot` and `setpriv` do for root; elsewhere these tests are skipped.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

DEVICES = ("null", "zero", "full", "random", "urandom")
_TOOLS = ("unshare", "mount", "chroot", "setpriv")


@dataclass(frozen=True)
class Mount:
    """`source`, a folder or a file of this machine, seen at `target`, which is made."""

    source: Path
    target: str
    writable: bool = False


@dataclass(frozen=True)
class Tree:
    """`mounts` belong to it, as the layers below an image do."""

    root: Path
    mounts: tuple[Mount, ...] = ()

    def enter(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        folder: str = "/",
        account: int | None = None,
        mounts: Iterable[Mount] = (),
    ) -> list[str]:
        """What to run for `command` in it, in the same process.

        With an `account`: without capabilities or a way to new ones, and everything is read-only but what
        `mounts` say. Without: as root, who may write everywhere.
        """
        every = (*self.mounts, *mounts)
        for mount in every:
            self._make_place(mount)
        for name in ("proc", "dev/shm", *(f"dev/{device}" for device in DEVICES)):
            self._make(name, is_folder=name in {"proc", "dev/shm"})
        variables = [f"{name}={value}" for name, value in environment.items()]
        called = ["/usr/bin/env", "-i", f"--chdir={folder}", *variables, *_lowered(account), *command]
        script = "\n".join(
            ["set -e", *self._steps(every, closed=account is not None), 'exec chroot "$0" "$@"']
        )
        return [
            "unshare", "--mount", "--propagation=private", "sh", "-c", script, str(self.root), *called,
        ]  # fmt: skip

    def _steps(self, mounts: Iterable[Mount], *, closed: bool) -> Iterable[str]:
        root = shlex.quote(str(self.root))
        yield f"mount --bind {root} {root}"
        yield f"mount --rbind /proc {root}/proc"
        yield f"mount -t tmpfs -o mode=1777 tmpfs {root}/dev/shm"
        yield from (f"mount --bind /dev/{device} {root}/dev/{device}" for device in DEVICES)
        for mount in mounts:
            place = shlex.quote(f"{self.root}{mount.target}")
            yield f"mount --bind {shlex.quote(str(mount.source))} {place}"
            if not mount.writable:
                yield f"mount -o remount,bind,ro {place}"
        if closed:
            yield f"mount -o remount,bind,ro {root}"

    def _make_place(self, mount: Mount) -> None:
        self._make(mount.target.lstrip("/"), is_folder=mount.source.is_dir())

    def _make(self, name: str, *, is_folder: bool) -> None:
        place = self.root / name
        if is_folder:
            place.mkdir(parents=True, exist_ok=True)
        elif not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.touch()


def _lowered(account: int | None) -> list[str]:
    if account is None:
        return []
    return [
        "setpriv", f"--reuid={account}", f"--regid={account}", "--clear-groups", "--no-new-privs",
        "--bounding-set=-all", "--inh-caps=-all", "--",
    ]  # fmt: skip


def demand_trees() -> None:
    """Skip, with the reason, where no tree can be entered."""
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed: no file system of one's own")
    if os.geteuid() != 0:
        pytest.skip("only root may enter a file system of its own and become another account there")
    tried = subprocess.run(
        ["unshare", "--mount", "--propagation=private", "mount", "-t", "tmpfs", "tmpfs", "/mnt"],
        capture_output=True,
        text=True,
        check=False,
    )
    if tried.returncode != 0:
        pytest.skip(f"this machine allows no mounts: {tried.stderr.strip()}")
