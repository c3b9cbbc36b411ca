from typing import Annotated

import typer

from orchestrator.types import JsonObject
from parley.commands.gateway import gateway_command
from parley.output import Answer, Rows, say
from parley_client import Client

app = typer.Typer(help="Manage webhooks.", no_args_is_help=True)

_LISTED = ("webhook_id", "session_id", "url", "events", "created_at")
_FAILING = ("webhook_id", "session_id", "status", "attempts", "delivered", "wanted", "failing_since", "error")

Webhook = Annotated[str, typer.Argument(help="Webhook ID.")]
Session = Annotated[str | None, typer.Option(help="Only events of this session.")]


@gateway_command(app, "list")
def list_webhooks(
    client: Client,
    failing: Annotated[
        bool,
        typer.Option("--failing", help="List sessions whose deliveries are being retried or were abandoned."),
    ] = False,
) -> Rows:
    """List webhooks or, with --failing, the sessions whose events are not being delivered."""
    return Rows(client.failing_webhooks(), _FAILING) if failing else Rows(client.webhooks(), _LISTED)


@gateway_command(app)
def create(
    client: Client,
    address: Annotated[str, typer.Argument(help="URL that events are sent to.")],
    session: Session = None,
    event: Annotated[
        list[str] | None, typer.Option(help="Event type. Repeat for several. Default: all.")
    ] = None,
) -> JsonObject:
    """Create a webhook for the events of one session or all sessions."""
    return client.create_webhook(address, session_id=session, events=event or None)


@gateway_command(app)
def close(client: Client, webhook: Webhook) -> None:
    """Delete a webhook."""
    client.close_webhook(webhook)
    say(f"Deleted {webhook}.")


@gateway_command(app)
def retry(client: Client, webhook: Webhook, session: Session = None) -> JsonObject:
    """Resume delivery to a webhook now, from the first undelivered event."""
    return client.retry_webhook(webhook, session_id=session)


@gateway_command(app)
def secret(client: Client) -> Answer:
    """Create a signing secret and print it to standard output. Deliveries are also signed with the previous secret."""
    made = client.rotate_webhook_secret()
    return Answer(made, made["secret"])
