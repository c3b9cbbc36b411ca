"""`parley runs`: list, show, start, watch, cancel and rerun background runs (IF-16)."""

import time
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from orchestrator.errors import InvalidInput
from parley.commands.gateway import gateway_command
from parley.output import Answer, Rows, as_lines
from parley_client import Client

POLL_S = 0.25
_ENDED = {"done", "skipped", "failed", "cancelled", "blocked"}
_COUNTED = ("done", "skipped", "failed")

app = typer.Typer(help="Manage background runs.", no_args_is_help=True)

Run = Annotated[str, typer.Argument(help="Run ID.")]
Session = Annotated[str | None, typer.Option(help="ID of the session to run the flow for.")]


@gateway_command(app, "list")
def list_runs(
    client: Client,
    session: Annotated[str | None, typer.Option(help="Only runs of this session.")] = None,
    flow: Annotated[str | None, typer.Option(help="Only runs of this flow.")] = None,
    status: Annotated[str | None, typer.Option(help="Only runs in this status.")] = None,
) -> Rows:
    """List runs, newest first."""
    found = client.runs(session_id=session, flow=flow, status=status)
    return Rows([_summary(run) for run in found], value=found)


@gateway_command(app)
def backlog(client: Client) -> Rows:
    """Show the backlog of deferred background work, by session."""
    found = client.backlog()
    return Rows(found["sessions"], value=found)


@gateway_command(app)
def show(
    client: Client,
    run: Run,
    items: Annotated[int, typer.Option(help="Maximum number of items to show.")] = 0,
) -> Answer | Rows:
    """Show a run and, with --items, its first items."""
    found = client.run(run)
    rows = client.run_items(run, limit=items) if items else []
    whole = {**found, "items": rows}
    return Rows(rows, value=whole, head=as_lines(found)) if rows else Answer(whole, as_lines(found))


@gateway_command(app)
def start(
    client: Client,
    flow: Annotated[str | None, typer.Argument(help="Name of the background flow.")] = None,
    session: Session = None,
    trigger: Annotated[
        str | None, typer.Option(help="Start all flows with this trigger, instead of one flow.")
    ] = None,
    inputs: Annotated[str, typer.Option(help="Inputs, as a JSON list.")] = "[]",
    follow: Annotated[bool, typer.Option("--watch", help="Watch the run until it ends.")] = False,
) -> Answer:
    """Start a flow, or all flows of a trigger. If the session already has an active run of the flow, show its ID."""
    started = client.start_run(flow, trigger=trigger, session_id=session, inputs=_read_list(inputs))
    run_ids = list(started["runs"].values())
    if not follow:
        return Answer(started, "\n".join(run_ids))
    latest = [_follow(client, run_id) for run_id in run_ids]
    told = [line for run_id, run in zip(run_ids, latest, strict=True) for line in (run_id, _ending(run))]
    return Answer(latest[0] if flow else latest, "\n".join(told))


@gateway_command(app)
def watch(client: Client, run: Run) -> Answer:
    """Watch a run and its reruns until it ends."""
    latest = _follow(client, run)
    return Answer(latest, _ending(latest))


@gateway_command(app)
def cancel(client: Client, run: Run) -> Answer:
    """Cancel a run. Dependent runs don't start."""
    found = client.cancel_run(run)
    return Answer(found, found["status"])


@gateway_command(app)
def redo(client: Client, run: Run) -> Answer:
    """Add a run to a finished chain of runs, even beyond the limit on automatic reruns."""
    found = client.redo_run(run)
    return Answer(found, found["run_id"])


def _follow(client: Client, run_id: str) -> dict[str, Any]:
    """Show the progress of a run and its reruns. Return the last run once it has ended."""
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
            counts = {name: latest["progress"][name] for name in _COUNTED}
            bar.update(
                shown,
                description=f"{run_id} {_describe(latest)}",
                total=latest["progress"]["total"] or None,
                completed=sum(counts.values()),
                note=", ".join(f"{count} {name}" for name, count in counts.items() if count),
            )
            if latest["status"] in _ENDED and latest["redo"] != "scheduled":
                return latest
            time.sleep(POLL_S)


def _describe(run: dict[str, Any]) -> str:
    rerun = "" if run["redo_count"] is None else f" (rerun {run['redo_count']})"
    return f"{run['flow']}{rerun}: {run['status']}"


def _ending(run: dict[str, Any]) -> str:
    why = run["error"] or run["reason"]
    return f"{_describe(run)}{'' if why is None else f': {why}'}"


def _summary(run: dict[str, Any]) -> dict[str, Any]:
    ended = sum(run["progress"][name] for name in _COUNTED)
    return {
        "run_id": run["run_id"],
        "flow": run["flow"],
        "status": run["status"],
        "items": f"{ended}/{run['progress']['total']}",
        "rerun": run["redo_count"],
        "session_id": run["session_id"],
        "why": run["error"] or run["reason"],
    }


def _read_list(text: str) -> list[Any]:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidInput(f"--inputs is not valid JSON: {error}", field="inputs") from error
    if not isinstance(value, list):
        raise InvalidInput('--inputs must be a JSON list, for example ["a", "b"].', field="inputs")
    return value
