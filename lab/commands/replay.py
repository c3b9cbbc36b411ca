import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.errors import InvalidInput
from orchestrator.types import DEFAULT_TENANT, JsonObject, SessionId
from parley.commands.options import DEFAULT_DATA_DIR, DataDir
from parley.commands.stores import open_some_database
from parley.data_folder import EVALUATIONS
from parley.output import print_json, progress, say

app = typer.Typer()


@app.command("replay")
def replay_sessions(
    sessions: Annotated[
        list[str] | None,
        typer.Argument(metavar="[SESSION]...", show_default=False, help="Sessions to replay."),
    ] = None,
    last: Annotated[
        int, typer.Option(min=1, help="Number of recent sessions to replay if no SESSION is given.")
    ] = 100,
    of: Annotated[
        str | None,
        typer.Option(help="Replay only sessions of this domain. Default: the domain given by --domain."),
    ] = None,
    tenant: Annotated[str, typer.Option(help="Tenant of the sessions.")] = DEFAULT_TENANT,
    domain: Annotated[
        str | None,
        typer.Option(help="Domain or folder to replay against. Default: the sessions' own domain."),
    ] = None,
    prompt: Annotated[
        str | None, typer.Option(metavar="ID@VERSION", help="Prompt version to use, for example nlu_think@6.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Model to ask. Default: use the recorded answers.")
    ] = None,
    since: Annotated[
        int, typer.Option("--from", min=1, metavar="VERSION", help="First version to replay.")
    ] = 1,
    allow: Annotated[
        Path | None,
        typer.Option(help="File of accepted differences, one per line: SESSION or SESSION VERSION."),
    ] = None,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(help="Exit with status 1 only if this aspect, such as calls, changes."),
    ] = None,
    processes: Annotated[int, typer.Option(min=1, help="Number of replay processes.")] = os.cpu_count() or 1,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Replay finished turns against a new version.

    Each turn starts from its recorded state, clock and journal. No session changes, and no tool is called. Differences
    are printed turn by turn and stored for the inspector. Exits with status 1 if a difference isn't allowed.
    """
    from lab.replay.comparing import ASPECTS  # noqa: PLC0415  # slow to import
    from lab.replay.report import keep, read_allowed, sum_up  # noqa: PLC0415
    from lab.replay.running import Wanted, replay  # noqa: PLC0415

    if unknown := sorted(set(fail_on or ()) - set(ASPECTS)):
        raise InvalidInput(
            f"Unknown aspect {unknown[0]!r}; choose from {', '.join(ASPECTS)}.", field="fail_on"
        )
    allowed = read_allowed(allow)
    if not sessions and of is None:
        of = Path(domain).expanduser().resolve().name if domain else None
    named = tuple(map(SessionId, sessions or ()))
    wanted = Wanted(named, last, of, tenant, domain, prompt, model, since)
    with open_some_database(data_dir) as url, progress("sessions") as counted:
        recorded, done, seconds = replay(url, wanted, processes=processes, counted=counted)
    report = sum_up(recorded, wanted, done, seconds, allowed)
    _show(report, keep(report, data_dir / EVALUATIONS), fail_on or (), json=json)


def _show(report: JsonObject, path: Path, fail_on: Sequence[str], *, json: bool) -> None:
    """Print the report and exit with status 1 if a difference isn't allowed."""
    from lab.replay.report import count_forbidden, tell  # noqa: PLC0415  # slow to import

    if json:
        print_json({**report, "report": str(path)})
    else:
        print("\n".join(tell(report)))
        say(f"Stored as {path}")
    if forbidden := count_forbidden(report, fail_on):
        say(f"{forbidden} turns changed unexpectedly.")
        raise typer.Exit(1)
