"""`parley feedback`: what people said of answers, and the cases that come of it."""

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.client import Client
from orchestrator.types import JsonObject
from parley.commands.gateway import gateway_command
from parley.output import Answer, Rows

app = typer.Typer(help="List what people said of answers, and make cases of it.", no_args_is_help=True)

_LISTED = ("session_id", "turn_id", "rating", "comment", "correction", "author", "at")
_TURNS_AT_ONCE = 1000

Session = Annotated[str | None, typer.Option(help="Only of this session.")]


@gateway_command(app, "list")
def list_feedback(client: Client, session: Session = None) -> Rows:
    """List what people said of answers, newest first."""
    return Rows(client.feedback(session_id=session), _LISTED)


@gateway_command(app)
def cases(
    client: Client,
    domain: Annotated[str, typer.Argument(help="Name of the domain whose sessions are meant.")],
    into: Annotated[
        Path | None, typer.Option(help="File of conversations to add them to; else they are printed.")
    ] = None,
    session: Session = None,
) -> Answer:
    """Make cases for `parley eval` of feedback and corrections: each conversation up to the turn that was rated."""
    from parley.evaluation.cases import add_cases, make_case, write_cases  # noqa: PLC0415  # slow to import

    given: dict[str, list[JsonObject]] = {}
    for feedback in client.feedback(session_id=session):
        given.setdefault(feedback["session_id"], []).append(feedback)
    made: list[JsonObject] = []
    for session_id, feedbacks in given.items():
        if client.session(session_id)["domain"] == domain:
            turns = _read_turns(client, session_id)
            made += [case for one in feedbacks if (case := make_case(one, turns)) is not None]
    if into is None:
        return Answer(made, f"conversations:\n{write_cases(made)}" if made else "none")
    return Answer(made, f"{add_cases(made, into)} of {len(made)} are new in {into}.")


def _read_turns(client: Client, session: str) -> list[JsonObject]:
    """Read all turns of a session, oldest first."""
    turns: list[JsonObject] = []
    while page := client.session_turns(
        session, before=turns[0]["seq"] if turns else None, limit=_TURNS_AT_ONCE
    ):
        turns = [*reversed(page), *turns]
    return turns
