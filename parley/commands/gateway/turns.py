"""`parley turns` and `parley approvals`: operate the lane, decide what waits."""

from typing import Annotated

import typer

from orchestrator.client import Client
from orchestrator.types import JsonObject
from parley.commands.gateway import gateway_command
from parley.commands.gateway.repair import Why, make_repair
from parley.output import Answer, Rows

app = typer.Typer()
turns = typer.Typer(help="List turns; retry, drop or cancel one.", no_args_is_help=True)
approvals = typer.Typer(help="List what waits for an approval; grant or deny it.", no_args_is_help=True)
app.add_typer(turns, name="turns")
app.add_typer(approvals, name="approvals")

_ASKED = ("approval_id", "tool_id", "status", "cause", "decided_by")
_LISTED = ("turn_id", "session_id", "seq", "status", "text", "error")

Turn = Annotated[str, typer.Argument(help="Identifier of the turn.")]
Approval = Annotated[str, typer.Argument(help="Identifier of the approval.")]
Reason = Annotated[str | None, typer.Option(help="Why; kept with the decision, and told to the user.")]
By = Annotated[str | None, typer.Option(help="Who decides; kept with the decision.")]


@gateway_command(turns, "list")
def list_turns(
    client: Client, status: Annotated[str | None, typer.Option(help="Only turns in this status.")] = None
) -> Rows:
    """List turns; `--status quarantined` shows those that were set aside."""
    return Rows(client.turns(status=status), _LISTED)


@gateway_command(turns)
def retry(client: Client, turn: Turn, why: Why = None) -> Answer:
    """Queue a quarantined turn again: the repair `retry` of its session."""
    return make_repair(client, client.turn(turn)["session_id"], {"kind": "retry", "turn": turn}, why)


@gateway_command(turns)
def drop(client: Client, turn: Turn, why: Why = None) -> Answer:
    """Give a quarantined or queued turn up: the repair `give-up` of its session."""
    return make_repair(client, client.turn(turn)["session_id"], {"kind": "give_up", "turn": turn}, why)


@gateway_command(turns)
def cancel(client: Client, turn: Turn) -> JsonObject:
    """Cancel a turn that is queued or running."""
    return client.cancel_turn(turn)


@gateway_command(approvals, "list")
def list_approvals(
    client: Client,
    status: Annotated[str | None, typer.Option(help="Only approvals in this status.")] = "pending",
    every: Annotated[bool, typer.Option("--all", help="Those that were decided or expired as well.")] = False,
    session: Annotated[str | None, typer.Option(help="Only those of this session.")] = None,
) -> Rows:
    """List what waits for a decision; with --all the whole trail, and who decided."""
    return Rows(client.approvals(None if every else status, session_id=session), _ASKED)


@gateway_command(approvals)
def grant(client: Client, approval: Approval, reason: Reason = None, by: By = None) -> JsonObject:
    """Allow the one call that was asked for; the session goes on with it."""
    return client.decide_approval(approval, "grant", reason=reason, decided_by=by)


@gateway_command(approvals)
def deny(client: Client, approval: Approval, reason: Reason = None, by: By = None) -> JsonObject:
    """Refuse it; the session gives the task up."""
    return client.decide_approval(approval, "deny", reason=reason, decided_by=by)
