from pathlib import Path
from typing import Annotated

import typer

from orchestrator.turns.cases import make_case
from orchestrator.types import JsonObject
from parley.commands.gateway import gateway_command
from parley.output import Answer, Rows
from parley_client import Client

app = typer.Typer(help="List user feedback, or turn it into test cases.", no_args_is_help=True)

_LISTED = ("session_id", "turn_id", "rating", "comment", "correction", "author", "at")
_TURNS_AT_ONCE = 1000

Session = Annotated[str | None, typer.Option(help="Only feedback on this session.")]


@gateway_command(app, "list")
def list_feedback(client: Client, session: Session = None) -> Rows:
    """List user feedback, newest first."""
    return Rows(client.feedback(session_id=session), _LISTED)


@gateway_command(app)
def cases(
    client: Client,
    domain: Annotated[str, typer.Argument(help="Domain of the sessions.")],
    into: Annotated[Path | None, typer.Option(help="File to add the cases to. Default: print them.")] = None,
    session: Session = None,
) -> Answer:
    """Turn feedback into test cases for `parley eval`: each conversation up to the rated turn."""
    from lab.evaluation.conversations import add_cases  # noqa: PLC0415  # slow to import
    from orchestrator.adapters.domains.yaml_source import write_items  # noqa: PLC0415  # slow to import

    given: dict[str, list[JsonObject]] = {}
    for feedback in client.feedback(session_id=session):
        given.setdefault(feedback["session_id"], []).append(feedback)
    made: list[JsonObject] = []
    for session_id, feedbacks in given.items():
        if client.session(session_id)["domain"] == domain:
            turns = _read_turns(client, session_id)
            made += [case for one in feedbacks if (case := make_case(turns, one["turn_id"], one)) is not None]
    if into is None:
        return Answer(made, f"conversations:\n{write_items(made)}" if made else "none")
    return Answer(made, f"Added {add_cases(made, into)} of {len(made)} cases to {into}.")


def _read_turns(client: Client, session: str) -> list[JsonObject]:
    turns: list[JsonObject] = []
    while page := client.session_turns(
        session, before=turns[0]["seq"] if turns else None, limit=_TURNS_AT_ONCE
    ):
        turns = [*reversed(page), *turns]
    return turns
