from typing import Annotated

import orjson
import typer

from orchestrator.errors import InvalidInput, Refused
from orchestrator.types import Json, JsonObject
from parley.commands.gateway import gateway_command
from parley.output import Answer
from parley_client import Client

app = typer.Typer()

FORMS: dict[str, tuple[str, ...]] = {
    "drop": ("flow",),
    "done": ("fingerprint",),
    "not-done": ("fingerprint",),
    "take-over": (),
    "say": ("text",),
    "hand-back": (),
    "release": (),
    "retry": ("turn",),
    "give-up": ("turn",),
}
"""Argument names by kind of repair."""

Why = Annotated[
    str | None,
    typer.Option(help="Apply the repair, and record this reason. Default: only preview the repair."),
]


@gateway_command(app)
def repair(
    client: Client,
    session: Annotated[str, typer.Argument(help="Session ID.")],
    change: Annotated[
        list[str] | None,
        typer.Argument(
            help="; ".join(" ".join((name, *map(str.upper, words))) for name, words in FORMS.items())
        ),
    ] = None,
    why: Why = None,
    result: Annotated[str, typer.Option(help="With `done`: the call's result, as JSON.")] = "{}",
) -> Answer:
    """Diagnose and repair a session. Without --why, nothing changes."""
    if not change:
        return _show(client.repairs(session))
    return make_repair(client, session, read_change(change, result), why)


def make_repair(client: Client, session: str, change: JsonObject, why: str | None) -> Answer:
    """Preview a repair or, if `why` is given, apply it. Raises Refused if it can't be applied."""
    preview = client.preview_repairs(session, [change])
    if why is None:
        return Answer(preview, _tell(preview["done"], preview["told"], preview["refused"]))
    if preview["refused"]:
        raise Refused(" ".join(preview["refused"]))
    made = client.repair(session, [change], epoch=preview["epoch"], why=why)
    return Answer(made, _tell(made["done"], made["reply"], []) + f"\nversion {made['epoch']}")


def read_change(words: list[str], result: str = "{}") -> JsonObject:
    """Parse a repair from command-line arguments. `result`: JSON result of a call that the repair marks as done.

    Raises InvalidInput if the repair is unknown or incomplete, or `result` is not JSON.
    """
    name, *given = words
    wanted = FORMS.get(name)
    if wanted is None or len(given) != len(wanted):
        forms = [name] if wanted is not None else list(FORMS)
        told = ", ".join(" ".join((form, *map(str.upper, FORMS[form]))) for form in forms)
        raise InvalidInput(f"Unknown or incomplete repair; use {told}.", field="change")
    repair: JsonObject = {"kind": name.replace("-", "_"), **dict(zip(wanted, given, strict=True))}
    if name in {"done", "not-done"}:
        repair |= {"kind": "mark", "done": name == "done", "result": _read_json(result)}
    return repair


def _read_json(text: str) -> Json:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidInput(f"{text[:60]!r} is not JSON.", field="change") from error


def _show(found: JsonObject) -> Answer:
    lines = [f"version {found['epoch']}", *(f"problem: {one}" for one in found["wrong"])]
    if found["person"]:
        lines.append(f"{found['person']} answers the user.")
    lines += [
        f"{turn['turn_id']} {turn['status']}: {turn['error'] or ''}".rstrip(": ") for turn in found["turns"]
    ]
    lines += [
        f"{one['tool_id']} {one['status']} ({one['fingerprint']}) {orjson.dumps(one['arguments']).decode()}"
        for one in found["effects"]
    ]
    lines += [f"{one['approval_id']} is pending: {one['question']}" for one in found["approvals"]]
    lines += [f"suggested: {_write(fit['repair'])}  # {fit['why']}" for fit in found["fits"]]
    return Answer(found, "\n".join(lines))


def _write(repair: JsonObject) -> str:
    """Format a repair as command-line arguments, with uppercase placeholders for missing values."""
    name = str(repair["kind"]).replace("_", "-")
    if name == "mark":
        name = "done" if repair["done"] else "not-done"
    return " ".join((name, *(str(repair[word] or word.upper()) for word in FORMS[name])))


def _tell(done: list[str], told: str | None, refused: list[str]) -> str:
    lines = [
        *done,
        *([f"Message to the user: {told}"] if told else []),
        *(f"Rejected: {one}" for one in refused),
    ]
    return "\n".join(lines)
