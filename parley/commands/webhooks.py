"""`parley webhooks`: who is told of events, what fails, and the secret that deliveries are signed with."""

from __future__ import annotations

from typing import Annotated

import typer

from parley.commands.options import DEFAULT_DATA_DIR, AsJson, DataDir, Url
from parley.commands.output import print_json, say
from parley.commands.sessions import print_rows
from parley.connection import connect

webhooks = typer.Typer(help="Have events told elsewhere; see what fails, and retry it.", no_args_is_help=True)

_LISTED = ("webhook_id", "session_id", "url", "events", "created_at")
_FAILING = ("webhook_id", "session_id", "status", "attempts", "delivered", "wanted", "failing_since", "error")

Webhook = Annotated[str, typer.Argument(help="Identifier of the webhook.")]
Session = Annotated[str | None, typer.Option(help="Only for this session.")]


@webhooks.command("list")
def list_webhooks(
    failing: Annotated[bool, typer.Option("--failing", help="What is retried or was given up.")] = False,
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = DEFAULT_DATA_DIR,
) -> None:
    """List the webhooks, or with --failing the sessions whose events do not arrive."""
    client = connect(url, data_dir)
    rows = client.failing_webhooks() if failing else client.webhooks()
    print_rows(rows, as_json=as_json, columns=_FAILING if failing else _LISTED)


@webhooks.command()
def create(
    address: Annotated[str, typer.Argument(help="Where events are posted to.")],
    session: Session = None,
    event: Annotated[
        list[str] | None, typer.Option(help="A type of event; repeat it. All by default.")
    ] = None,
    url: Url = None,
    data_dir: DataDir = DEFAULT_DATA_DIR,
) -> None:
    """Have the events of one session, or of all, posted to an address."""
    print_json(connect(url, data_dir).create_webhook(address, session_id=session, events=event or None))


@webhooks.command()
def close(webhook: Webhook, url: Url = None, data_dir: DataDir = DEFAULT_DATA_DIR) -> None:
    """Tell it nothing more."""
    connect(url, data_dir).close_webhook(webhook)
    say(f"{webhook} is told nothing more.")


@webhooks.command()
def retry(
    webhook: Webhook, session: Session = None, url: Url = None, data_dir: DataDir = DEFAULT_DATA_DIR
) -> None:
    """Deliver again, at once, from where it stopped."""
    print_json(connect(url, data_dir).retry_webhook(webhook, session_id=session))


@webhooks.command()
def secret(url: Url = None, data_dir: DataDir = DEFAULT_DATA_DIR) -> None:
    """Make a new secret and print it, alone on standard output; the one before stays valid beside it."""
    print(connect(url, data_dir).rotate_webhook_secret()["secret"])
