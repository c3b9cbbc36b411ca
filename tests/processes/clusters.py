"""PostgreSQL clusters created once and copied, because `initdb` takes a second of CPU time."""

from __future__ import annotations

import fcntl
import hashlib
import subprocess
from functools import partial
from pathlib import Path
from typing import Any, Final

from parley.embedded import postgres

PASSWORD: Final = "of-all-clusters-of-the-tests"
"""File with the cluster's password, so that copies have the same password."""
make_cluster: Final = postgres._make_cluster
read_password: Final = postgres._password


def make_clusters_once(folder: Path) -> None:
    """Make this process and its forks copy clusters from a stored cluster in the folder."""
    postgres._password = _password
    postgres._make_cluster = partial(_copy, folder)


def _password(data_dir: Path) -> str:
    """Use the stored password of an existing cluster."""
    path = data_dir / "postgres.password"
    if path.exists():
        return read_password(data_dir)
    path.touch(mode=0o600)
    path.write_text(PASSWORD)
    return PASSWORD


def _copy(folder: Path, cluster: Path, binaries: Path, account: Any, password: str, *, durable: bool) -> None:
    """Copy a stored cluster for this program version, calling code and account."""
    initdb = (binaries / "initdb").stat()
    known = f"{Path(postgres.__file__).read_text()} {initdb.st_size} {initdb.st_mtime_ns} {account}"
    kept = folder / f"cluster-{hashlib.sha256(known.encode()).hexdigest()[:12]}"
    copying = partial(subprocess.run, check=True)
    with kept.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            made = kept.with_suffix(".unfinished")
            make_cluster(cluster, binaries, account, password, durable=durable)
            copying(["rm", "-rf", made])
            copying(["cp", "-a", cluster, made])
            made.rename(kept)
            return
    copying(["cp", "-a", kept, cluster])
