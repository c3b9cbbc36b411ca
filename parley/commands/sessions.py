"""`parley submit`, `sessions`, `show`, `history`, `rollback`: one turn, looking at sessions, stepping back."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from parley.commands.conversation import answer_of
from parley.commands.options import DEFAULT_DATA_DIR, AsJson, DataDir, Url
from parley.commands.output import print_json
from parley.connection import connect

_LISTED = ("session_id", "domain", "user_id", "epoch", "status", "pending", "updated_at")
_SPEAKERS = {"user": "You", "agent": "Parley"}

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
    """List the sessions, newest activity first."""
    print_rows(connect(url, data_dir).sessions(), as_json=as_json, columns=_LISTED)


def show(
    session: Session, as_json: AsJson = False, url: Url = None, data_dir: DataDir = DEFAULT_DATA_DIR
) -> None:
    """Show a session: its facts and its flow stack, top last."""
    found = connect(url, data_dir).session(session)
    if as_json:
        print_json(found)
        return
    state = found.pop("state", None) or {}
    for name, value in found.items():
        print(f"{name:<12} {'' if value is None else value}")
    for flow in state.get("stack", []):
        print(f"{'flow':<12} {_describe(flow)}")


def _describe(flow: dict[str, Any]) -> str:
    reason = f", {flow['reason']}" if flow.get("reason") else ""
    slots = ", ".join(f"{name}={held['value']}" for name, held in flow.get("slots", {}).items())
    return f"{flow['dact']} ({flow['state']}{reason}) {slots}".rstrip()


def history(
    session: Session, as_json: AsJson = False, url: Url = None, data_dir: DataDir = DEFAULT_DATA_DIR
) -> None:
    """Print what was said in a session, oldest first."""
    for utterance in connect(url, data_dir).history(session):
        if as_json:
            print_json(utterance)
        else:
            print(f"{_SPEAKERS.get(utterance['role'], utterance['role'])}: {utterance['content']}")


def rollback(
    session: Session,
    epoch: Annotated[int, typer.Argument(min=0, help="The epoch whose state becomes current again.")],
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = DEFAULT_DATA_DIR,
) -> None:
    """Make an earlier state of a session current again; the history is kept."""
    found = connect(url, data_dir).rollback(session, epoch)
    if as_json:
        print_json(found)
    else:
        print(f"{session} is as it was after epoch {epoch}; that is epoch {found['epoch']} now.")


def print_rows(rows: list[dict[str, Any]], *, as_json: bool, columns: tuple[str, ...] = ()) -> None:
    """Records as a table of some of their members, or whole as one JSON object per line."""
    if as_json:
        for row in rows:
            print_json(row)
        return
    if not rows:
        print("none")
        return
    table = Table(box=None)
    shown = columns or tuple(rows[0])
    for name in shown:
        table.add_column(name, no_wrap=True)
    for row in rows:
        table.add_row(*("" if row.get(name) is None else str(row[name]) for name in shown))
    console = Console()
    console.print(table, soft_wrap=not console.is_terminal)
