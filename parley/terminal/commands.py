"""Slash commands. Unknown commands are sent as messages, because the assistant may understand them."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from orchestrator.errors import NotFound
from parley.terminal.conversation import Conversation, Turn, line_of
from parley.terminal.words import (
    LEAVING,
    clean,
    describe_flow,
    describe_plan,
    describe_status,
    plain,
)


@dataclass(slots=True)
class Talk:
    """A conversation in a terminal. `turn`: the last turn. `progress`: the plan's progress. `over`: True to exit."""

    conversation: Conversation
    console: Console
    turn: Turn | None = None
    progress: str = ""
    over: bool = False

    @property
    def status(self) -> str:
        return describe_status(self.turn, self.progress)

    @property
    def flows(self) -> list[Turn]:
        """The flow stack after the last turn, top last."""
        return (self.turn or {}).get("flows") or []

    def note(self, text: str) -> None:
        self.console.print(Text(text, style="dim"))


Command = Callable[[Talk], None]
COMMANDS: dict[str, tuple[Command, str]] = {}
MESSAGES = frozenset({"/page"})
"""Slash commands that every assistant understands."""
_SLASH_WORD = re.compile(r"/\w+(?!\S)")


def _command(name: str, words: str) -> Callable[[Command], Command]:
    """Return a decorator that registers a command. `words`: its description in `/help`."""

    def register(command: Command) -> Command:
        COMMANDS[name] = (command, words)
        return command

    return register


def find_command(line: str) -> Command | None:
    """Return the command that a line begins with, or None if the line is a message."""
    known = COMMANDS.get(line.partition(" ")[0])
    return None if known is None else known[0]


def find_unknown(line: str) -> str | None:
    """Return the word that a message begins with if it looks like a command, which only the domain may define."""
    word = _SLASH_WORD.match(line)
    return None if word is None or word.group() in MESSAGES else word.group()


@_command("/help", "this list")
def _help(talk: Talk) -> None:
    table = Table.grid(padding=(0, 2))
    rows = [
        *((name, words) for name, (_command, words) in COMMANDS.items()),
        ("/1, /2 …", "choose a suggested reply"),
        ("Alt-Enter", "a new line; Enter sends"),
    ]
    for name, words in rows:
        table.add_row(Text(name), Text(words, style="dim"))
    talk.console.print(table)


@_command("/stack", "list the open tasks, starting with the current one")
def _stack(talk: Talk) -> None:
    if not talk.flows:
        talk.note("No task is open.")
    for place, flow in enumerate(reversed(talk.flows)):
        name, state = describe_flow(flow)
        talk.console.print(Text(f"{' ' if place else '›'} {name}: {state}"))


@_command("/plan", "show the plan and its steps")
def _plan(talk: Talk) -> None:
    try:
        plan = talk.conversation.client.plan(talk.conversation.session_id)
    except NotFound:
        talk.note("There is no plan.")
        return
    for line in describe_plan(plan):
        talk.console.print(Text(clean(line)))


@_command("/undo", "undo the last turn")
def _undo(talk: Talk) -> None:
    client, session_id = talk.conversation.client, talk.conversation.session_id
    epoch = int(client.session(session_id)["epoch"])
    if epoch < 2:
        talk.note("There is no turn to undo.")
        return
    client.rollback(session_id, epoch - 1)
    talk.turn, talk.progress = None, ""
    talk.note("Undid the last turn. The tools' side effects remain.")


@_command("/history", "show this session's messages")
def _history(talk: Talk) -> None:
    for said in talk.conversation.client.history(talk.conversation.session_id):
        talk.console.print(Text(plain(line_of(said))))


@_command("/new", "start a new session")
def _new(talk: Talk) -> None:
    before = talk.conversation
    talk.conversation = Conversation.begin(
        before.client, domain=before.domain, session_id=None, user_id=before.user_id, place=before.place
    )
    talk.turn, talk.progress = None, ""
    talk.note(f"Session {talk.conversation.session_id}.")


def _leave(talk: Talk) -> None:
    talk.over = True


for _name in LEAVING:
    _command(_name, "leave the chat, like Ctrl-D")(_leave)
