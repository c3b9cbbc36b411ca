"""What a line that begins with a slash does. Others of that form are messages: a domain may know them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from orchestrator.errors import InvalidInput, NotFound
from parley.terminal.conversation import Conversation, Turn
from parley.terminal.show import make_table
from parley.terminal.words import clean, plain, say_progress, say_status


@dataclass(slots=True)
class Talk:
    """A conversation in a terminal. `turn`: the last one. `read`: asks the user for one more line."""

    conversation: Conversation
    console: Console
    read: Callable[[str], str]
    turn: Turn | None = None
    progress: str = ""
    over: bool = False

    @property
    def status(self) -> str:
        return say_status(self.turn, self.progress)

    def note(self, text: str) -> None:
        self.console.print(Text(text, style="dim"))


Command = Callable[[Talk, str], Turn | None]
"""Does something; gives the turn that came of it, if one did."""


def _help(talk: Talk, _: str) -> None:
    table = Table.grid(padding=(0, 2))
    for name, (_command, words) in COMMANDS.items():
        table.add_row(Text(name), Text(words, style="dim"))
    table.add_row(
        Text("/1, /2 …"),
        Text("choose a suggested reply; where one is asked for, the number alone", style="dim"),
    )
    table.add_row(Text("Alt-Enter"), Text("a new line; Enter sends", style="dim"))
    talk.console.print(table)


def _stack(talk: Talk, _: str) -> None:
    flows = _flows(talk)
    if not flows:
        talk.note("No task is open.")
        return
    for place, flow in enumerate(reversed(flows)):
        reason = f", {clean(flow['reason']).replace('_', ' ')}" if flow.get("reason") else ""
        talk.console.print(
            Text(f"{'›' if place == 0 else ' '} {clean(flow['dact'])}: {clean(flow['state'])}{reason}")
        )


def _slots(talk: Talk, _: str) -> None:
    flows = _flows(talk)
    slots: dict[str, Any] = flows[-1]["slots"] if flows else {}
    if not slots:
        talk.note("No value is noted.")
        return
    for name, value in slots.items():
        talk.console.print(Text(f"{clean(name)}: {clean(value)}"))


def _flows(talk: Talk) -> list[Turn]:
    return (talk.turn or {}).get("flows") or []


def _plan(talk: Talk, _: str) -> None:
    try:
        plan = talk.conversation.client.plan(talk.conversation.session_id)
    except NotFound:
        talk.note("There is no plan.")
        return
    body = plan.get("body") or plan
    talk.console.print(Text(f"{clean(plan.get('goal') or plan.get('dact'))}{say_progress(plan)}"))
    for step in body.get("steps") or []:
        talk.console.print(
            Text(f"  {clean(step.get('state', ''))}: {clean(step.get('label') or step.get('name'))}")
        )


def _undo(talk: Talk, _: str) -> None:
    """Step back to before the last turn."""
    session = talk.conversation.client.session(talk.conversation.session_id)
    epoch = int(session["epoch"])
    if epoch < 2:
        talk.note("There is nothing to step back to.")
        return
    talk.conversation.client.rollback(talk.conversation.session_id, epoch - 1)
    talk.turn = None
    talk.progress = ""
    talk.note("Stepped back to before the last turn. What tools have done outside stays done.")


def _approve(talk: Talk, _: str) -> Turn | None:
    return _decide(talk, "approve")


def _deny(talk: Talk, _: str) -> Turn | None:
    return _decide(talk, "deny")


def _decide(talk: Talk, decision: str) -> Turn | None:
    conversation = talk.conversation
    waiting = conversation.client.approvals(status="pending", session_id=conversation.session_id)
    if not waiting:
        talk.note("Nothing waits for an approval.")
        return None
    newest = waiting[0]
    return conversation.act(
        decision, {"approval_id": newest["approval_id"], "flow_id": newest.get("flow_id")}
    )


def _history(talk: Talk, _: str) -> None:
    for said in talk.conversation.client.history(talk.conversation.session_id):
        who = {"user": "You", "agent": "Parley"}.get(str(said.get("role")), clean(said.get("role")))
        talk.console.print(Text(f"{who}: {plain(str(said.get('content', '')))}"))


def _new(talk: Talk, _: str) -> None:
    talk.conversation = Conversation.begin(
        talk.conversation.client, domain=talk.conversation.domain, session_id=None
    )
    talk.turn, talk.progress = None, ""
    talk.note(f"Session {talk.conversation.session_id}.")


def _form(talk: Talk, _: str) -> Turn | None:
    interaction = (talk.turn or {}).get("interaction") or {}
    if interaction.get("kind") != "form":
        talk.note("There is no form to fill in.")
        return None
    values = {
        field["name"]: value for field in interaction["fields"] if (value := _read_field(talk, field)) != ""
    }
    if not values:
        talk.note("Nothing was filled in.")
        return None
    submit = interaction["submit"]
    return talk.conversation.act(submit["name"], {**submit["payload"], "values": values})


def _read_field(talk: Talk, field: Turn) -> Any:
    choices = f" ({', '.join(clean(value) for value in field['values'])})" if field.get("values") else ""
    said = talk.read(f"{clean(field['label'])}{choices}: ").strip()
    if field.get("type") == "number":
        try:
            return float(said) if "." in said else int(said)
        except ValueError:
            return said
    return said


def _page(talk: Talk, argument: str) -> None:
    frame = (talk.turn or {}).get("frame")
    if frame is None or frame["block"]["type"] != "table":
        talk.note("There is no table to page through.")
        return
    if not argument.isdigit():
        raise InvalidInput("Say which page: /page 2.", field="page")
    conversation = talk.conversation
    page = conversation.client.frame_page(conversation.session_id, frame["frame_id"], int(argument))
    talk.console.print(make_table(frame["block"]["columns"], page["rows"], title=f"page {argument}"))


def _quit(talk: Talk, _: str) -> None:
    talk.over = True


COMMANDS: Mapping[str, tuple[Command, str]] = {
    "/help": (_help, "this list"),
    "/stack": (_stack, "the open tasks, the present one first"),
    "/slots": (_slots, "what is noted for the present task"),
    "/plan": (_plan, "the plan and its steps"),
    "/page": (_page, "another page of the last table: /page 2"),
    "/form": (_form, "fill in the form that was asked"),
    "/undo": (_undo, "step back to before the last turn"),
    "/approve": (_approve, "approve what waits for it"),
    "/deny": (_deny, "do not approve it"),
    "/history": (_history, "what was said in this session"),
    "/new": (_new, "begin another session"),
    "/quit": (_quit, "end the conversation"),
}


def find_command(line: str) -> tuple[Command, str] | None:
    """The command of a line and its argument; None when the line is a message."""
    name, _, argument = line.partition(" ")
    known = COMMANDS.get(name)
    return None if known is None else (known[0], argument.strip())
