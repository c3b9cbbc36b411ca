"""`parley runs`: Internal flows at work: list, show, start, watch, cancel, redo (IF-16)."""

from __future__ import annotations

import time
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from orchestrator.client import Client
from orchestrator.errors import InvalidInput
from parley.commands.options import DEFAULT_DATA_DIR, AsJson, DataDir, Url
from parley.commands.output import print_json
from parley.commands.sessions import print_rows
from parley.connection import connect

POLL_S = 0.25
_ENDED = {"done", "skipped", "failed", "cancelled", "blocked"}

runs = typer.Typer(help="Look at housekeeping runs; start, watch, cancel or redo one.", no_args_is_help=True)

Run = Annotated[str, typer.Argument(help="Identifier of the run.")]
Session = Annotated[str | None, typer.Option(help="Identifier of a session.")]


@runs.command("list")
def list_runs(
    session: Session = None,
    flow: Annotated[str | None, typer.Option(help="Only runs of this flow.")] = None,
    status: Annotated[str | None, typer.Option(help="Only runs in this status.")] = None,
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = DEFAULT_DATA_DIR,
) -> None:
    """List runs, newest first."""
    found = connect(url, data_dir).runs(session_id=session, flow=flow, status=status)
    print_rows(found if as_json else [_row(run) for run in found], as_json=as_json)


@runs.command()
def debt(as_json: AsJson = False, url: Url = None, data_dir: DataDir = DEFAULT_DATA_DIR) -> None:
    """Show the housekeeping that is due and put off while turns have to wait, by session."""
    found = connect(url, data_dir).housekeeping_debt()
    print_rows([found] if as_json else found["sessions"], as_json=as_json)


@runs.command()
def show(
    run: Run,
    items: Annotated[int, typer.Option(help="How many items to show as well.")] = 0,
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = DEFAULT_DATA_DIR,
) -> None:
    """Show a run, and item by item what became of its inputs."""
    client = connect(url, data_dir)
    found = client.run(run)
    rows = client.run_items(run, limit=items) if items else []
    if as_json:
        print_json({**found, "items": rows})
        return
    for name, value in found.items():
        print(f"{name:<12} {'' if value is None else value}")
    if rows:
        print_rows(rows, as_json=False)


@runs.command()
def start(
    flow: Annotated[str, typer.Argument(help="Name of the Internal flow.")],
    session: Session = None,
    inputs: Annotated[str, typer.Option(help="Its inputs, a JSON list.")] = "[]",
    follow: Annotated[bool, typer.Option("--watch", help="Watch it until it ends.")] = False,
    url: Url = None,
    data_dir: DataDir = DEFAULT_DATA_DIR,
) -> None:
    """Start a flow; one that is at work on the session already is joined."""
    client = connect(url, data_dir)
    started = client.start_run(flow, session_id=session, inputs=_read_list(inputs))
    print(started["run_id"])
    if follow:
        _watch(client, started["run_id"])


@runs.command()
def watch(run: Run, url: Url = None, data_dir: DataDir = DEFAULT_DATA_DIR) -> None:
    """Follow a run with its reruns until it ends."""
    _watch(connect(url, data_dir), run)


@runs.command()
def cancel(run: Run, url: Url = None, data_dir: DataDir = DEFAULT_DATA_DIR) -> None:
    """End a run; what depends on it is left unrun."""
    print(connect(url, data_dir).cancel_run(run)["status"])


@runs.command()
def redo(run: Run, url: Url = None, data_dir: DataDir = DEFAULT_DATA_DIR) -> None:
    """Run it once more by hand, also past the ceiling of automatic reruns."""
    print(connect(url, data_dir).redo_run(run)["run_id"])


def _watch(client: Client, run_id: str) -> None:
    """A bar that fills with the items that have ended, for the latest run of the chain."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        shown = bar.add_task(run_id, total=None, note="")
        while True:
            latest = client.run(client.run(run_id)["chain"][-1])
            progress = latest["progress"]
            counts = {name: progress[name] for name in ("done", "skipped", "failed")}
            bar.update(
                shown,
                description=_describe(latest),
                total=progress["total"] or None,
                completed=sum(counts.values()),
                note=", ".join(f"{count} {name}" for name, count in counts.items() if count),
            )
            if latest["status"] in _ENDED and latest["redo"] != "scheduled":
                break
            time.sleep(POLL_S)
    print(_ending(latest))


def _describe(run: dict[str, Any]) -> str:
    rerun = "" if run["redo_count"] is None else f" (rerun {run['redo_count']})"
    return f"{run['flow']}{rerun}: {run['status']}"


def _ending(run: dict[str, Any]) -> str:
    why = run["error"] or run["reason"]
    return f"{_describe(run)}{'' if why is None else f': {why}'}"


def _row(run: dict[str, Any]) -> dict[str, Any]:
    progress = run["progress"]
    ended = progress["done"] + progress["skipped"] + progress["failed"]
    return {
        "run_id": run["run_id"],
        "flow": run["flow"],
        "status": run["status"],
        "items": f"{ended}/{progress['total']}",
        "rerun": run["redo_count"],
        "session_id": run["session_id"],
        "why": run["error"] or run["reason"],
    }


def _read_list(text: str) -> list[Any]:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidInput(f"--inputs is no JSON: {error}", field="inputs") from error
    if not isinstance(value, list):
        raise InvalidInput('--inputs must be a JSON list, for example ["a", "b"].', field="inputs")
    return value
