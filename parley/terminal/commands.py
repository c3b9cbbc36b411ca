"""Slash commands. Unknown commands are sent as messages, because a domain may understand them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from orchestrator.errors import NotFound
from parley.terminal.conversation import Conversation, Turn, line_of
from parley.terminal.words import (
    clean,
    describe_flow,
    describe_progress,
    describe_search,
    describe_status,
    plain,
)


@dataclass(slots=True)
class Talk:
    """A conversation in a terminal. `turn`: the last turn. `read`: prompts the user for a line."""

    conversation: Conversation
    console: Console
    read: Callable[[str], str]
    turn: Turn | None = None
    progress: str = ""
    over: bool = False

    @property
    def status(self) -> str:
        return describe_status(self.turn, self.progress)

    @property
    def flows(self) -> list[Turn]:
        """Return the flow stack after the last turn, top last."""
        return (self.turn or {}).get("flows") or []

    def note(self, text: str) -> None:
        self.console.print(Text(text, style="dim"))


# A command takes its argument, and returns the turn that it submits or None.
Command = Callable[[Talk, str], Turn | None]
COMMANDS: dict[str, tuple[Command, str]] = {}


def _command(name: str, words: str) -> Callable[[Command], Command]:
    """Register a command with its line for `/help`."""

    def register(command: Command) -> Command:
        COMMANDS[name] = (command, words)
        return command

    return register


def find_command(line: str) -> tuple[Command, str] | None:
    """Parse a line as a command and its argument. Returns None for a message."""
    name, _, argument = line.partition(" ")
    known = COMMANDS.get(name)
    return None if known is None else (known[0], argument.strip())


@_command("/help", "this list")
def _help(talk: Talk, _: str) -> None:
    table = Table.grid(padding=(0, 2))
    rows = [
        *((name, words) for name, (_command, words) in COMMANDS.items()),
        ("/1, /2 …", "choose a suggested reply"),
        ("Alt-Enter", "a new line; Enter sends"),
    ]
    for name, words in rows:
        table.add_row(Text(name), Text(words, style="dim"))
    talk.console.print(table)


@_command("/stack", "list the open tasks, the current one first")
def _stack(talk: Talk, _: str) -> None:
    if not talk.flows:
        talk.note("No task is open.")
    for place, flow in enumerate(reversed(talk.flows)):
        name, state = describe_flow(flow)
        talk.console.print(Text(f"{' ' if place else '›'} {name}: {state}"))


@_command("/slots", "show the current task's values")
def _slots(talk: Talk, _: str) -> None:
    slots: dict[str, Any] = talk.flows[-1]["slots"] if talk.flows else {}
    if not slots:
        talk.note("The current task has no values yet.")
    for name, value in slots.items():
        talk.console.print(Text(f"{clean(name)}: {clean(value)}"))


@_command("/plan", "show the plan and its steps")
def _plan(talk: Talk, _: str) -> None:
    try:
        plan = talk.conversation.client.plan(talk.conversation.session_id)
    except NotFound:
        talk.note("There is no plan.")
        return
    body = plan.get("body") or plan
    talk.console.print(Text(f"{clean(plan.get('goal') or plan.get('dact'))}{describe_progress(plan)}"))
    for step in body.get("steps") or []:
        name = clean(step.get("label") or step.get("name"))
        talk.console.print(Text(f"  {clean(step.get('state', ''))}: {name}"))
    for line in describe_search(plan):
        talk.console.print(Text(clean(line)))


@_command("/tools", "show the last turn's tool calls and arguments")
def _tools(talk: Talk, _: str) -> None:
    calls: list[dict[str, Any]] = (talk.turn or {}).get("tools") or []
    if not calls:
        talk.note("The last turn called no tools.")
    for call in calls:
        talk.console.print(Text(f"{clean(call['tool_id'])}: {clean(call['status'])}"))
        for name, value in (call.get("arguments") or {}).items():
            talk.console.print(Text(f"  {clean(name)}: {clean(value)}"))


@_command("/form", "fill in the form")
def _form(talk: Talk, _: str) -> Turn | None:
    interaction = (talk.turn or {}).get("interaction") or {}
    if interaction.get("kind") != "form":
        talk.note("There is no open form.")
        return None
    values = {field["name"]: _read_field(talk, field) for field in interaction["fields"]}
    values = {name: value for name, value in values.items() if value != ""}
    if not values:
        talk.note("The form is unchanged.")
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


@_command("/undo", "go back to before the last turn")
def _undo(talk: Talk, _: str) -> None:
    client, session_id = talk.conversation.client, talk.conversation.session_id
    epoch = int(client.session(session_id)["epoch"])
    if epoch < 2:
        talk.note("There is no turn to undo.")
        return
    client.rollback(session_id, epoch - 1)
    talk.turn, talk.progress = None, ""
    talk.note("Went back to before the last turn. Side effects of tools stay.")


@_command("/approve", "approve the pending call")
def _approve(talk: Talk, _: str) -> Turn | None:
    return _decide(talk, "approve")


@_command("/deny", "deny the pending call")
def _deny(talk: Talk, _: str) -> Turn | None:
    return _decide(talk, "deny")


def _decide(talk: Talk, decision: str) -> Turn | None:
    conversation = talk.conversation
    waiting = conversation.client.approvals(status="pending", session_id=conversation.session_id)
    if not waiting:
        talk.note("No approval is pending.")
        return None
    payload = {"approval_id": waiting[0]["approval_id"], "flow_id": waiting[0].get("flow_id")}
    return conversation.act(decision, payload)


@_command("/history", "show this session's messages")
def _history(talk: Talk, _: str) -> None:
    for said in talk.conversation.client.history(talk.conversation.session_id):
        talk.console.print(Text(plain(line_of(said))))


@_command("/new", "start a new session")
def _new(talk: Talk, _: str) -> None:
    before = talk.conversation
    talk.conversation = Conversation.begin(
        before.client, domain=before.domain, session_id=None, user_id=before.user_id, place=before.place
    )
    talk.turn, talk.progress = None, ""
    talk.note(f"Session {talk.conversation.session_id}.")


@_command("/quit", "exit")
def _quit(talk: Talk, _: str) -> None:
    talk.over = True
