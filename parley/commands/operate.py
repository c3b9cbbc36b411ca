"""`parley turns`: operate the lane."""

from __future__ import annotations

from typing import Annotated

import typer

from parley.commands.options import DEFAULT_DATA_DIR, AsJson, DataDir, Url
from parley.commands.output import print_json
from parley.commands.sessions import print_rows
from parley.connection import connect

turns = typer.Typer(help="Look at turns; retry, drop or cancel one.", no_args_is_help=True)

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
