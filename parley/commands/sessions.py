"""`parley submit`, `sessions`, `show`, `history`: one turn, and looking at sessions."""

from __future__ import annotations

from typing import Annotated, Any

import orjson
import typer
from rich.console import Console
from rich.table import Table

from parley.commands.conversation import answer_of
from parley.commands.options import DEFAULT_DATA_DIR, AsJson, DataDir, Url
from parley.commands.output import print_json
from parley.connection import connect

_LONGEST_WAIT_S = 60.0

Session = Annotated[str, typer.Argument(help="Identifier of the session.")]


def submit(
    session: Session,
    text: str,
    wait: Annotated[
        float | None, typer.Option(help="Seconds to wait for the answer; without it, do not.")
    ] = None,
    idempotency_key: Annotated[
        str | None, typer.Option(help="Submitting it again gives the same turn.")
    ] = None,
    if_busy: Annotated[str | None, typer.Option(help="What to do while a turn is running.")] = None,
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = DEFAULT_DATA_DIR,
) -> None:
    """Submit one turn to a session."""
    client = connect(url, data_dir)
    turn = client.submit(session, text, idempotency_key=idempotency_key, if_busy=if_busy, wait_s=wait)
    if as_json:
        print_json(turn)
    elif wait is None:
        print(f"{turn['turn_id']} {turn['status']}")
    else:
        print(answer_of(turn))


def list_sessions(as_json: AsJson = False, url: Url = None, data_dir: DataDir = DEFAULT_DATA_DIR) -> None:
    """List the sessions."""
    print_rows(connect(url, data_dir).sessions(), as_json=as_json)


def show(
    session: Session, as_json: AsJson = False, url: Url = None, data_dir: DataDir = DEFAULT_DATA_DIR
) -> None:
    """Show a session: its state in short, and its flow stack."""
    found = connect(url, data_dir).session(session)
    if as_json:
        print_json(found)
        return
    state = found.pop("state", None)
    for name, value in found.items():
        print(f"{name:<12} {'' if value is None else value}")
    if state is not None:
        Console().print_json(orjson.dumps(state).decode())


def history(
    session: Session, as_json: AsJson = False, url: Url = None, data_dir: DataDir = DEFAULT_DATA_DIR
) -> None:
    """Print what was said in a session."""
    for utterance in connect(url, data_dir).history(session):
        if as_json:
            print_json(utterance)
        else:
            print(f"{utterance.get('speaker', '?')}: {utterance.get('text', '')}")


def print_rows(rows: list[dict[str, Any]], *, as_json: bool) -> None:
    """Records as a table, or one JSON object per line."""
    if as_json:
        for row in rows:
            print_json(row)
        return
    if not rows:
        print("none")
        return
    table = Table(box=None)
    for name in rows[0]:
        table.add_column(name)
    for row in rows:
        table.add_row(*("" if row.get(name) is None else str(row.get(name)) for name in rows[0]))
    Console().print(table)
