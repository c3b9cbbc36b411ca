from typing import Annotated

import typer

from orchestrator.types import JsonObject
from parley.commands.gateway import gateway_command
from parley.commands.gateway.repair import Why, make_repair
from parley.output import Answer, Rows
from parley_client import Client

app = typer.Typer()
turns = typer.Typer(help="List, retry, drop or cancel turns.", no_args_is_help=True)
approvals = typer.Typer(help="List, grant or deny pending approvals.", no_args_is_help=True)
app.add_typer(turns, name="turns")
app.add_typer(approvals, name="approvals")

_ASKED = ("approval_id", "tool_id", "status", "cause", "decided_by")
_LISTED = ("turn_id", "session_id", "seq", "status", "text", "error")

Turn = Annotated[str, typer.Argument(help="Turn ID.")]
Approval = Annotated[str, typer.Argument(help="Approval ID.")]
Reason = Annotated[str | None, typer.Option(help="Reason, stored with the decision and shown to the user.")]
By = Annotated[str | None, typer.Option(help="ID of the decider, stored with the decision.")]


@gateway_command(turns, "list")
def list_turns(
    client: Client, status: Annotated[str | None, typer.Option(help="Only turns in this status.")] = None
) -> Rows:
    """List turns. `--status quarantined`: only turns that need an operator."""
    return Rows(client.turns(status=status), _LISTED)


@gateway_command(turns)
def retry(client: Client, turn: Turn, why: Why = None) -> Answer:
    """Requeue a quarantined turn."""
    return make_repair(client, client.turn(turn)["session_id"], {"kind": "retry", "turn": turn}, why)


@gateway_command(turns)
def drop(client: Client, turn: Turn, why: Why = None) -> Answer:
    """Drop a quarantined or queued turn."""
    return make_repair(client, client.turn(turn)["session_id"], {"kind": "give_up", "turn": turn}, why)


@gateway_command(turns)
def cancel(client: Client, turn: Turn) -> JsonObject:
    """Cancel a queued or running turn."""
    return client.cancel_turn(turn)


@gateway_command(approvals, "list")
def list_approvals(
    client: Client,
    status: Annotated[str | None, typer.Option(help="Only approvals in this status.")] = "pending",
    every: Annotated[bool, typer.Option("--all", help="Include decided and expired approvals.")] = False,
    session: Annotated[str | None, typer.Option(help="Only approvals of this session.")] = None,
) -> Rows:
    """List pending approvals or, with --all, all approvals with their decisions."""
    return Rows(client.approvals(None if every else status, session_id=session), _ASKED)


@gateway_command(approvals)
def grant(client: Client, approval: Approval, reason: Reason = None, by: By = None) -> JsonObject:
    """Grant an approval, so that the session makes the pending call."""
    return client.decide_approval(approval, "grant", reason=reason, decided_by=by)


@gateway_command(approvals)
def deny(client: Client, approval: Approval, reason: Reason = None, by: By = None) -> JsonObject:
    """Deny an approval, so that the session cancels the task."""
    return client.decide_approval(approval, "deny", reason=reason, decided_by=by)
