"""`parley memory`: list and erase a user's preferences (CO-4)."""

from typing import Annotated

import typer

from orchestrator.errors import InvalidInput, NotFound
from parley.commands.gateway import gateway_command
from parley.output import Answer, Rows
from parley_client import Client

app = typer.Typer(help="Show or erase a user's preferences.", no_args_is_help=True)

User = Annotated[str, typer.Argument(help="User ID.")]


@gateway_command(app, "list")
def list_preferences(client: Client, user: User) -> Rows:
    """List a user's preferences."""
    return Rows(client.preferences(user)["preferences"], ("key", "kind", "source", "value", "text"))


@gateway_command(app)
def forget(
    client: Client,
    user: User,
    keys: Annotated[list[str] | None, typer.Argument(help="Keys of the entries to erase.")] = None,
    everything: Annotated[
        bool, typer.Option("--everything", help="Erase all preferences, and the text of the user's messages.")
    ] = False,
) -> Answer:
    """Erase a user's preferences permanently.

    Traces of them in conversations, scratchpad and documents are erased within minutes.
    """
    if everything == bool(keys):
        raise InvalidInput("Specify keys to forget, or --everything.", field="keys")
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
    return Answer(
        body, f"Forgotten. Preferences left: {len(left)}." if left else "Forgotten. No preferences are left."
    )
