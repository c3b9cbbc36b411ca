"""`parley replay`: decide finished conversations once more, and show what would come out otherwise."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.errors import InvalidInput
from orchestrator.types import JsonObject, SessionId
from parley.commands.options import DEFAULT_DATA_DIR, DataDir
from parley.commands.stores import open_some_database
from parley.data_folder import EVALUATIONS
from parley.output import print_json, progress, say

WHAT_IS_MEANT = "Runs of Internal flows, or sessions; else what begins with run_ is a run."

app = typer.Typer()


@app.command("replay")
def replay_sessions(
    sessions: Annotated[
        list[str] | None, typer.Argument(metavar="[SESSION|RUN]...", show_default=False)
    ] = None,
    last: Annotated[
        int, typer.Option(min=1, help="Without SESSION or RUN: so many that were active last.")
    ] = 100,
    of: Annotated[str | None, typer.Option(help="The domain of those; else the name of --domain.")] = None,
    tenant: Annotated[str | None, typer.Option(help="The tenant of those; else all.")] = None,
    domain: Annotated[
        str | None, typer.Option(help="Decide by this domain, name or folder; else by their own.")
    ] = None,
    prompt: Annotated[str | None, typer.Option(metavar="ID@VERSION", help="Ask by this prompt.")] = None,
    model: Annotated[
        str | None, typer.Option(help="Ask this model anew; else its answers of then serve.")
    ] = None,
    runs: Annotated[bool | None, typer.Option("--runs/--sessions", help=WHAT_IS_MEANT)] = None,
    since: Annotated[int, typer.Option("--from", min=1, metavar="EPOCH", help="Begin with this epoch.")] = 1,
    allow: Annotated[
        Path | None,
        typer.Option(help="What may come out otherwise: SESSION, SESSION EPOCH, RUN, or RUN STAGE, a line."),
    ] = None,
    fail_on: Annotated[
        list[str] | None, typer.Option(help="End with 1 for these changes only: calls, slots, answer …")
    ] = None,
    processes: Annotated[int, typer.Option(min=1, help="How many work side by side.")] = os.cpu_count() or 1,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Decide finished conversations or housekeeping runs once more.

    Each turn is decided by its state, clock and journal of then. Nothing is written and no tool is called. What would
    come out otherwise is shown turn by turn and kept for the inspector; the command ends with 1 when there is
    something that is not allowed.
    """
    from parley.replay.comparing import ALL_ASPECTS  # noqa: PLC0415  # slow to import
    from parley.replay.report import keep, read_allowed, sum_up  # noqa: PLC0415
    from parley.replay.running import Wanted, replay  # noqa: PLC0415
    from parley.replay.runs import replay_runs  # noqa: PLC0415

    if unknown := sorted(set(fail_on or ()) - set(ALL_ASPECTS)):
        raise InvalidInput(
            f"There is no aspect {unknown[0]}; there are {', '.join(ALL_ASPECTS)}.", field="fail_on"
        )
    allowed = read_allowed(allow)
    if not sessions and of is None:
        of = Path(domain).expanduser().resolve().name if domain else None
    named = tuple(sessions or ())
    runs = all(one.startswith("run_") for one in named or [""]) if runs is None else runs
    wanted = Wanted((), last, of, tenant, domain, prompt, model, since)
    with open_some_database(data_dir) as url, progress("runs" if runs else "sessions") as counted:
        if runs:
            recorded, done, seconds = replay_runs(url, replace(wanted, runs=named), counted=counted)
        else:
            wanted = replace(wanted, sessions=tuple(map(SessionId, named)))
            recorded, done, seconds = replay(url, wanted, processes=processes, counted=counted)
    report = sum_up(recorded, wanted, done, seconds, allowed)
    _show(report, keep(report, data_dir / EVALUATIONS), fail_on or (), json=json)


def _show(report: JsonObject, path: Path, fail_on: Sequence[str], *, json: bool) -> None:
    """Print a report, and end with 1 where something came out otherwise that may not."""
    from parley.replay.report import count_forbidden, tell  # noqa: PLC0415  # slow to import

    if json:
        print_json({**report, "report": str(path)})
    else:
        print("\n".join(tell(report)))
        say(f"Kept as {path}")
    if forbidden := count_forbidden(report, fail_on):
        say(f"{forbidden} {'stages' if report['runs'] else 'turns'} came out otherwise that may not.")
        raise typer.Exit(1)
