"""`parley submit`, `sessions`, `show`, `history`, `rollback`: one turn, the sessions, stepping back."""

from typing import Annotated, Any

import typer

from orchestrator.client import Client
from orchestrator.errors import NotFound
from parley.commands.gateway import gateway_command
from parley.output import Answer, Rows, as_lines
from parley.terminal.conversation import answer_of, line_of

app = typer.Typer()

_LISTED = ("session_id", "domain", "user_id", "epoch", "status", "pending", "updated_at")

Session = Annotated[str, typer.Argument(help="Identifier of the session.")]


@gateway_command(app)
def submit(
    client: Client,
    session: Session,
    text: str,
    wait: Annotated[
        float | None, typer.Option(help="Seconds to wait for the answer; without it, do not.")
    ] = None,
    idempotency_key: Annotated[
        str | None, typer.Option(help="Submitting it again gives the same turn.")
    ] = None,
    if_busy: Annotated[str | None, typer.Option(help="What to do while a turn is running.")] = None,
) -> Answer:
    """Submit one turn to a session."""
    turn = client.submit(session, text, idempotency_key=idempotency_key, if_busy=if_busy, wait_s=wait)
    return Answer(turn, f"{turn['turn_id']} {turn['status']}" if wait is None else answer_of(turn))


@gateway_command(app, "sessions")
def list_sessions(client: Client) -> Rows:
    """List the sessions, newest activity first."""
    return Rows(client.sessions(), _LISTED)


@gateway_command(app)
def show(client: Client, session: Session) -> Answer:
    """Show a session: its facts and its flow stack, top last."""
    found = client.session(session)
    try:
        plan = client.plan(session)
    except NotFound:
        plan = None
    facts = {name: value for name, value in found.items() if name != "state"}
    flows = (found.get("state") or {}).get("stack", [])
    lines = [as_lines(facts), *(f"{'flow':<12} {_describe(flow)}" for flow in flows)]
    if plan is None:
        return Answer(found, "\n".join(lines))
    return Answer({**found, "plan": plan}, "\n".join([*lines, *describe_plan(plan)]))


def describe_plan(plan: dict[str, Any]) -> list[str]:
    """Describe a plan in lines: what for, how far, and each step with its state."""
    reason = f", {plan['reason']}" if plan.get("reason") else ""
    head = f"{plan['dact']} ({plan['state']}{reason}), {plan['progress']} done, revision {plan['revision']}"
    lines = [f"{'plan':<12} {head}", f"{'goal':<12} {plan['goal']}"]
    for number, step in enumerate(plan["steps"], start=1):
        why = f": {step['note']}" if step.get("note") else ""
        state = step["reason"] if step["state"] in {"Invalid", "Pending"} else step["state"]
        lines.append(f"{f'step {number}':<12} {step['purpose']} [{step['dact']}] {state}{why}")
    return lines


def _describe(flow: dict[str, Any]) -> str:
    reason = f", {flow['reason']}" if flow.get("reason") else ""
    slots = ", ".join(f"{name}={held['value']}" for name, held in flow.get("slots", {}).items())
    return f"{flow['dact']} ({flow['state']}{reason}) {slots}".rstrip()


@gateway_command(app)
def history(client: Client, session: Session) -> Answer:
    """Print what was said in a session, oldest first."""
    said = client.history(session)
    return Answer(said, "\n".join(map(line_of, said)))


@gateway_command(app)
def rollback(
    client: Client,
    session: Session,
    epoch: Annotated[int, typer.Argument(min=0, help="The epoch whose state becomes current again.")],
) -> Answer:
    """Make an earlier state of a session current again. The history is kept."""
    found = client.rollback(session, epoch)
    return Answer(found, f"{session} is as it was after epoch {epoch}; that is epoch {found['epoch']} now.")
