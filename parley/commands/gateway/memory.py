"""`parley memory`: what is remembered of a user, with where it is from, and forgetting it (CO-4)."""

from typing import Annotated

import typer

from orchestrator.client import Client
from orchestrator.errors import InvalidInput, NotFound
from parley.commands.gateway import gateway_command
from parley.output import Answer, Rows

app = typer.Typer(help="Show what is remembered of a user, or forget it.", no_args_is_help=True)

User = Annotated[str, typer.Argument(help="Who it is about.")]


@gateway_command(app, "list")
def list_preferences(client: Client, user: User) -> Rows:
    """List what is remembered of a user."""
    return Rows(client.preferences(user)["preferences"], ("key", "kind", "source", "value", "text"))


@gateway_command(app)
def forget(
    client: Client,
    user: User,
    keys: Annotated[list[str] | None, typer.Argument(help="What is to be forgotten, by key.")] = None,
    everything: Annotated[bool, typer.Option("--everything", help="All, and all that was said.")] = False,
) -> Answer:
    """Forget for good: within minutes it is gone from conversations, notes and documents."""
    if everything == bool(keys):
        raise InvalidInput("Name keys of what is to be forgotten, or say --everything.", field="keys")
    known = client.preferences(user)["preferences"]
    unknown = set(keys or ()) - {one["key"] for one in known}
    if unknown:
        raise NotFound("preference", ", ".join(sorted(unknown)))
    left = [
        one
        for one in known
        if not everything and {one["key"], one["origin"].get("note")}.isdisjoint(keys or ())
    ]
    body = client.replace_preferences(user, left)
    return Answer(body, f"Forgotten; {len(left)} left." if left else "Forgotten; nothing is left.")
