"""`parley turns` and `parley approvals`: operate the lane, decide what waits."""

from __future__ import annotations

from typing import Annotated

import typer

from parley.commands.options import DEFAULT_DATA_DIR, AsJson, DataDir, Url
from parley.commands.output import print_json
from parley.commands.sessions import print_rows
from parley.connection import connect

turns = typer.Typer(help="Look at turns; retry, drop or cancel one.", no_args_is_help=True)

approvals = typer.Typer(help="See what waits for an approval; grant or deny it.", no_args_is_help=True)

_ASKED = ("approval_id", "tool_id", "status", "cause", "decided_by")
_LISTED = ("turn_id", "session_id", "seq", "status", "text", "error")

Turn = Annotated[str, typer.Argument(help="Identifier of the turn.")]


@turns.command("list")
def list_turns(
    status: Annotated[str | None, typer.Option(help="Only turns in this status.")] = None,
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = DEFAULT_DATA_DIR,
) -> None:
    """List turns; `--status quarantined` shows those that were set aside."""
    print_rows(connect(url, data_dir).turns(status=status), as_json=as_json, columns=_LISTED)


@turns.command()
def retry(turn: Turn, url: Url = None, data_dir: DataDir = DEFAULT_DATA_DIR) -> None:
    """Queue a quarantined or failed turn again."""
    print_json(connect(url, data_dir).retry_turn(turn))


@turns.command()
def drop(turn: Turn, url: Url = None, data_dir: DataDir = DEFAULT_DATA_DIR) -> None:
    """Give a quarantined turn up, so that its session goes on."""
    print_json(connect(url, data_dir).drop_turn(turn))


@turns.command()
def cancel(turn: Turn, url: Url = None, data_dir: DataDir = DEFAULT_DATA_DIR) -> None:
    """Cancel a turn that is queued or running."""
    print_json(connect(url, data_dir).cancel_turn(turn))


Approval = Annotated[str, typer.Argument(help="Identifier of the approval.")]
Reason = Annotated[str | None, typer.Option(help="Why; kept with the decision, and told to the user.")]
By = Annotated[str | None, typer.Option(help="Who decides; kept with the decision.")]


@approvals.command("list")
def list_approvals(
    status: Annotated[str | None, typer.Option(help="Only approvals in this status.")] = "pending",
    every: Annotated[bool, typer.Option("--all", help="Those that were decided or expired as well.")] = False,
    session: Annotated[str | None, typer.Option(help="Only those of this session.")] = None,
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = DEFAULT_DATA_DIR,
) -> None:
    """List what waits for a decision; with --all the whole trail, and who decided."""
    rows = connect(url, data_dir).approvals(None if every else status, session_id=session)
    print_rows(rows, as_json=as_json, columns=_ASKED)


@approvals.command()
def grant(
    approval: Approval,
    reason: Reason = None,
    by: By = None,
    url: Url = None,
    data_dir: DataDir = DEFAULT_DATA_DIR,
) -> None:
    """Allow the one call that was asked for; the session goes on with it."""
    print_json(connect(url, data_dir).decide_approval(approval, "grant", reason=reason, decided_by=by))


@approvals.command()
def deny(
    approval: Approval,
    reason: Reason = None,
    by: By = None,
    url: Url = None,
    data_dir: DataDir = DEFAULT_DATA_DIR,
) -> None:
    """Refuse it; the session gives the task up."""
    print_json(connect(url, data_dir).decide_approval(approval, "deny", reason=reason, decided_by=by))
