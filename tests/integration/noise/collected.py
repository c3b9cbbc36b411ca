"""Everything that a run has left behind: logs, process commands, pages, Redis, tables, traces."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

import httpx
import orjson
import psutil
import psycopg
from psycopg import sql

from tests.integration.noise.deployed import Place

HOLDS_CONTENTS = frozenset(
    {
        "approvals",
        "document_chunks",
        "documents",
        "effects",
        "events",
        "feedback",
        "flows_archive",
        "forgotten_preferences",
        "frames",
        "internal_items",
        "internal_runs",
        "journal",
        "outbox",
        "plan_revisions",
        "plans",
        "preferences",
        "records",
        "scratchpad_entries",
        "state_history",
        "states",
        "turns",
        "utterances",
    }
)
"""Tables for texts of users, models and tools. The outbox contains pending notes."""
KEPT_FOR_CONTENTS = (b"parley:scratchpad:", b"parley:streamed:", b"parley:answers:", b"parley:events")
"""Redis keys for such texts: notes, live events, streamed text, and cached tool answers."""
BY_CONTRACT = (b"submissions", b"celery-task-meta-", b"unacked")
"""Redis keys for submissions of backends and their results."""


def read_logs(there: Place) -> dict[str, bytes]:
    """Return all log files of processes and stores."""
    paths = [
        *there.folder.glob("logs/**/*"),
        *there.folder.glob("stores/logs/*"),
        there.folder / "redis" / "log",
    ]
    return {f"log {path.relative_to(there.folder)}": path.read_bytes() for path in paths if path.is_file()}


def read_commands() -> dict[str, bytes]:
    """Return the arguments of every process of this machine."""
    found: dict[str, bytes] = {}
    for process in psutil.process_iter(["pid", "cmdline"]):
        found[f"process {process.info['pid']}"] = "\0".join(process.info["cmdline"] or ()).encode()
    return found


def read_pages(addresses: Mapping[str, str], operator: str, flower: tuple[str, str]) -> dict[str, bytes]:
    """Return metrics of gateway and workers, health, and everything that Flower shows."""
    found: dict[str, bytes] = {}
    with httpx.Client(headers={"Authorization": f"Bearer {operator}"}) as desk:
        for path in (
            "/metrics",
            "/health",
            "/health/ready",
            "/v1/runs",
            "/v1/webhooks",
            "/v1/webhooks?failing=true",
        ):
            found[f"gateway {path}"] = desk.get(f"{addresses['gateway']}{path}").content
    for name in ("turns", "internal"):
        found[f"metrics of {name}"] = httpx.get(f"{addresses[name]}/metrics").raise_for_status().content
    with httpx.Client(base_url=addresses["flower"], auth=flower, timeout=30) as page:
        paths = ["/", "/workers", "/tasks", "/broker", "/metrics", "/api/workers?refresh=false", "/api/tasks"]
        for path in paths:
            found[f"flower {path}"] = page.get(path).content
        tasks = orjson.loads(found["flower /api/tasks"])
        for task_id in tasks:
            found[f"flower task {task_id}"] = page.get(f"/task/{task_id}").content
            found[f"flower task {task_id} (API)"] = page.get(f"/api/task/info/{task_id}").content
        for worker in orjson.loads(page.get("/api/workers").content):
            found[f"flower worker {worker}"] = page.get(f"/worker/{worker}").content
    return found


def read_redis(there: Place) -> dict[str, bytes]:
    """Return everything that was ever written to Redis, by key, from its append-only file."""
    found: defaultdict[str, list[bytes]] = defaultdict(list)
    for path in sorted(there.folder.glob("redis/appendonlydir/*.aof")):
        for command in _commands(path.read_bytes()):
            key = command[1] if len(command) > 1 else b""
            found[f"redis {key.decode(errors='replace')}"].append(b"\n".join(command))
    return {place: b"\n".join(commands) for place, commands in found.items()}


def read_tables(there: Place) -> dict[str, bytes]:
    """Return every table as text."""
    with psycopg.connect(there.database_url) as connection, connection.cursor() as cursor:
        names = cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        found: dict[str, bytes] = {}
        for (name,) in names:
            with cursor.copy(sql.SQL("COPY {} TO STDOUT").format(sql.Identifier(name))) as copied:
                found[f"table {name}"] = b"".join(bytes(piece) for piece in copied)
    return found


def read_traces(there: Place) -> dict[str, bytes]:
    return {"traces": b"\n".join(asked.body for asked in there.outside.asked["v1"])}


def is_for_contents(place: str) -> bool:
    """Return whether users' texts may be stored there."""
    kind, _, name = place.partition(" ")
    if kind == "table":
        return name in HOLDS_CONTENTS
    return kind == "redis" and name.encode().startswith((*KEPT_FOR_CONTENTS, *BY_CONTRACT))


def _commands(content: bytes) -> Iterator[list[bytes]]:
    """Yield the commands of an append-only file: ``*2 $3 DEL $1 a``, one part per line; comments begin with #."""
    at = 0
    while at < len(content):
        line, at = _line(content, at)
        if not line.startswith(b"*"):
            continue
        parts: list[bytes] = []
        for _ in range(int(line[1:])):
            line, at = _line(content, at)
            size = int(line[1:])
            parts.append(content[at : at + size])
            at += size + 2
        yield parts


def _line(content: bytes, at: int) -> tuple[bytes, int]:
    end = content.index(b"\n", at)
    return content[at:end].rstrip(b"\r"), end + 1
