"""`parley webhooks`: where events are sent, what fails, and the secret that deliveries are signed with."""

from typing import Annotated

import typer

from orchestrator.client import Client
from orchestrator.types import JsonObject
from parley.commands.gateway import gateway_command
from parley.output import Answer, Rows, say

app = typer.Typer(help="Have events sent elsewhere; list what fails, and retry it.", no_args_is_help=True)

_LISTED = ("webhook_id", "session_id", "url", "events", "created_at")
_FAILING = ("webhook_id", "session_id", "status", "attempts", "delivered", "wanted", "failing_since", "error")

Webhook = Annotated[str, typer.Argument(help="Identifier of the webhook.")]
Session = Annotated[str | None, typer.Option(help="Only for this session.")]


@gateway_command(app, "list")
def list_webhooks(
    client: Client,
    failing: Annotated[bool, typer.Option("--failing", help="What is retried or was given up.")] = False,
) -> Rows:
    """List the webhooks, or with --failing the sessions whose events do not arrive."""
    return Rows(client.failing_webhooks(), _FAILING) if failing else Rows(client.webhooks(), _LISTED)


@gateway_command(app)
def create(
    client: Client,
    address: Annotated[str, typer.Argument(help="Where events are posted to.")],
    session: Session = None,
    event: Annotated[
        list[str] | None, typer.Option(help="A type of event; repeat it. All by default.")
    ] = None,
) -> JsonObject:
    """Have the events of one session, or of all, posted to an address."""
    return client.create_webhook(address, session_id=session, events=event or None)


@gateway_command(app)
def close(client: Client, webhook: Webhook) -> None:
    """Send it no more events."""
    client.close_webhook(webhook)
    say(f"No more events are sent to {webhook}.")


@gateway_command(app)
def retry(client: Client, webhook: Webhook, session: Session = None) -> JsonObject:
    """Deliver again, at once, from where it stopped."""
    return client.retry_webhook(webhook, session_id=session)


@gateway_command(app)
def secret(client: Client) -> Answer:
    """Make a new secret and print it, alone on standard output; the one before stays valid beside it."""
    made = client.rotate_webhook_secret()
    return Answer(made, made["secret"])
