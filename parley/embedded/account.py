"""The system account for PostgreSQL when Parley runs as root.

Plain change of account where its files can be reached; where they lie below a closed folder (a clone
in root's home) the account keeps root's right to reach files, and nothing else of root's.
"""

import os
import pwd
import shutil
import stat
from pathlib import Path

from orchestrator.errors import Unavailable
from parley.processes import Account

_CANDIDATES = ("postgres", "nobody")


def choose_account(data_dir: Path, binaries: Path) -> Account | None:
    """The account to run PostgreSQL under; None means our own.

    Raises:
        Unavailable: we are root, and there is no account that could do it.
    """
    if os.geteuid() != 0:
        return None
    entry = _find_entry()
    os.chown(data_dir, -1, entry.pw_gid)
    data_dir.chmod(0o710)  # the account must pass through, and nobody else
    if is_open_to_all(data_dir) and is_open_to_all(binaries / "postgres"):
        return Account(entry.pw_uid, entry.pw_gid, keep_access=False)
    if shutil.which("setpriv") is None:
        raise Unavailable(
            f"PostgreSQL does not run as root, and {entry.pw_name!r} cannot reach {data_dir} or {binaries}: "
            "move the project out of the closed folder, install util-linux (setpriv), or run as another user."
        )
    return Account(entry.pw_uid, entry.pw_gid, keep_access=True)


def give_to(account: Account | None, folder: Path) -> None:
    """Make the account the owner of the folder and all in it, if it is not yet."""
    if account is None or folder.stat().st_uid == account.uid:
        return
    os.chown(folder, account.uid, account.gid)
    for root, folders, files in os.walk(folder):
        for name in (*folders, *files):
            os.chown(Path(root) / name, account.uid, account.gid, follow_symlinks=False)


def is_open_to_all(path: Path) -> bool:
    """Check that any account can get through the folders above `path`."""
    return all(parent.stat().st_mode & stat.S_IXOTH for parent in path.resolve().parents)


def _find_entry() -> pwd.struct_passwd:
    for name in _CANDIDATES:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise Unavailable(
        "PostgreSQL does not run as root and this system has neither an account 'postgres' nor 'nobody': "
        "run Parley as another user or point DATABASE_URL at a running server."
    )
