from contextlib import suppress
from typing import Annotated, Any

import typer

from orchestrator.errors import NotFound
from parley.commands.gateway import gateway_command
from parley.commands.options import LocaleOption, TimezoneOption
from parley.output import Answer, Rows, as_lines
from parley.terminal.conversation import answer_of, line_of
from parley.terminal.words import describe_plan
from parley_client import Client

app = typer.Typer()

_LISTED = ("session_id", "domain", "user_id", "epoch", "status", "pending", "updated_at")

Session = Annotated[str, typer.Argument(help="Session ID.")]


@gateway_command(app)
def submit(
    client: Client,
    session: Session,
    text: Annotated[str, typer.Argument(help="The user's message.")],
    wait: Annotated[
        float | None, typer.Option(help="Seconds to wait for the answer. Default: don't wait.")
    ] = None,
    idempotency_key: Annotated[
        str | None, typer.Option(help="Idempotency key. Submitting the same key again returns the same turn.")
    ] = None,
    if_busy: Annotated[str | None, typer.Option(help="Rule for the message if a turn is running.")] = None,
    timezone: TimezoneOption = None,
    locale: LocaleOption = None,
) -> Answer:
    """Submit a message to a session."""
    turn = client.submit(
        session,
        text,
        idempotency_key=idempotency_key,
        if_busy=if_busy,
        wait_s=wait,
        timezone=timezone,
        locale=locale,
    )
    return Answer(turn, f"{turn['turn_id']} {turn['status']}" if wait is None else answer_of(turn))


@gateway_command(app, "sessions")
def list_sessions(client: Client) -> Rows:
    """List sessions, most recently active first."""
    return Rows(client.sessions(), _LISTED)


@gateway_command(app)
def show(
    client: Client,
    session: Session,
    at: Annotated[
        int | None, typer.Option(min=0, help="Show the session as it was at this version, with its messages.")
    ] = None,
) -> Answer:
    """Show a session's state and flow stack. The top of the stack comes last."""
    found = client.session(session, at=at)
    if at is None:
        with suppress(NotFound):
            found["plan"] = client.plan(session)
    facts = {name: value for name, value in found.items() if name not in {"state", "plan", "history"}}
    flows = (found.get("state") or {}).get("stack", [])
    lines = [as_lines(facts), *(f"{'flow':<12} {_describe(flow)}" for flow in flows)]
    if "plan" in found:
        lines += describe_plan(found["plan"])
    return Answer(found, "\n".join([*lines, *map(line_of, found.get("history", ()))]))


def _describe(flow: dict[str, Any]) -> str:
    reason = f", {flow['reason']}" if flow.get("reason") else ""
    slots = ", ".join(
        f"{name}={held['value'] if isinstance(held, dict) else held}"
        for name, held in flow.get("slots", {}).items()
    )
    return f"{flow['dact']} ({flow['state']}{reason}) {slots}".rstrip()


@gateway_command(app)
def history(client: Client, session: Session) -> Answer:
    """Print a session's messages, oldest first."""
    said = client.history(session)
    return Answer(said, "\n".join(map(line_of, said)))


@gateway_command(app)
def rollback(
    client: Client,
    session: Session,
    epoch: Annotated[int, typer.Argument(min=0, help="Version to roll back to.")],
) -> Answer:
    """Roll a session back to an earlier version. The history is kept."""
    found = client.rollback(session, epoch)
    return Answer(
        found, f"Rolled {session} back to version {epoch}; the current version is {found['epoch']}."
    )


@gateway_command(app)
def branch(
    client: Client,
    session: Session,
    at: Annotated[
        int | None, typer.Option(min=0, help="Version to fork at. Default: the current version.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="ID of the new session.")] = None,
) -> Answer:
    """Fork a session at its current version or an earlier one."""
    found = client.branch(session, epoch=at, branch_id=name)
    return Answer(
        found, f"Created {found['session_id']}, a fork of {session} at version {found['parent_epoch']}."
    )


@gateway_command(app)
def compare(
    client: Client,
    session: Session,
    other: Annotated[str, typer.Argument(help="ID of the session to compare with.")],
) -> Answer:
    """Compare two forks of a session."""
    found = client.compare(session, other)
    return Answer(found, "\n".join(describe_comparison(found)))


def describe_comparison(found: dict[str, Any]) -> list[str]:
    """Format a comparison: the last shared version, later turns of both sessions, and side effects in only one."""
    common = found["common"]
    shared = f"version {common['epoch']} of {common['session_id']}" if common else "nothing"
    lines = [f"{'left':<12} {found['left']}", f"{'right':<12} {found['right']}", f"{'shared':<12} {shared}"]
    for number, pair in enumerate(found["turns"], start=1):
        differs = f"differs in {', '.join(pair['differs'])}" if pair["differs"] else "is the same"
        lines += ["", f"Turn {number} after the shared history {differs}:"]
        lines += [line for side in ("left", "right") for line in _describe_doing(side, pair[side])]
    for side, effects in found["effects"].items():
        lines += [f"{side:<12} {_describe_call(effect)}, only in its ledger" for effect in effects]
    return lines


def _describe_doing(side: str, turn: dict[str, Any] | None) -> list[str]:
    if turn is None:
        return [f"{side:<12} (no turn)"]
    said = [f"{side:<12} version {turn['epoch']} > {turn['said']}", f"{'':<12} {turn['reply']}"]
    flows = [f"{'flow':>12} {_describe(flow)}" for flow in turn["flows"]]
    done = [f"{'completed':>12} {dact}" for dact in turn["completed"]]
    return [*said, *flows, *done, *(f"{'call':>12} {_describe_call(call)}" for call in turn["tools"])]


def _describe_call(call: dict[str, Any]) -> str:
    arguments = ", ".join(f"{name}={value}" for name, value in call["arguments"].items())
    return f"{call['tool_id']}({arguments}) {call['status']}"
