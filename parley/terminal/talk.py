"""An interactive conversation: a fixed prompt below the streamed answers, a status line and commands."""

import asyncio
import shutil
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.patch_stdout import patch_stdout
from rich.console import Console

from orchestrator.errors import ParleyError, Unavailable
from parley.terminal.answers import Answers
from parley.terminal.commands import Talk, find_command, find_unknown
from parley.terminal.conversation import Conversation, Turn
from parley.terminal.streamed import StreamedWords, listen
from parley.terminal.words import choose_action, clean

HISTORY = "chat_history"
PROMPT = "You: "
PARTING = frozenset({"bye", "exit", "quit"})
"""Messages after which the user may want to leave. The assistant answers them, for example by stopping a task."""


def talk_in_terminal(conversation: Conversation, data_dir: Path) -> None:
    """Converse until Ctrl-D, Ctrl-C or a line in `LEAVING`. Keep the input history in the data folder if it exists."""
    asyncio.run(_converse(conversation, _make_prompt(data_dir)))


async def _converse(conversation: Conversation, session: PromptSession[str]) -> None:
    console = Console(highlight=False, markup=False, emoji=False)
    words = StreamedWords(lambda text: print(text, flush=True, file=console.file), session.app.invalidate)
    talk = Talk(conversation, console)
    answers = Answers(talk, words)
    listen(conversation.client, conversation.session_id, words)
    with patch_stdout(raw=True):  # prints answers above the prompt
        talk.note(f"Session {conversation.session_id}. /help lists the commands. To leave, press Ctrl-D.")
        while not talk.over:
            try:
                line = await session.prompt_async(
                    lambda: _begin_prompt(words), bottom_toolbar=lambda: answers.status
                )
            except EOFError:
                break
            except KeyboardInterrupt:
                return
            if line.strip():
                _take(answers, line.strip(), words)
        answers.wait()


def _begin_prompt(words: StreamedWords) -> str:
    """Return the prompt, preceded by the end of the streamed answer, at most half a screen."""
    written = "" if get_app().is_done else words.written
    if not written:
        return PROMPT
    size = shutil.get_terminal_size()
    room = size.columns * size.lines // 2
    return f"{written if len(written) < room else f'… {written[-room:]}'}\n{PROMPT}"


def _make_prompt(data_dir: Path) -> PromptSession[str]:
    history: History = FileHistory(str(data_dir / HISTORY)) if data_dir.is_dir() else InMemoryHistory()
    return PromptSession(
        history=history, multiline=True, key_bindings=_make_keys(), prompt_continuation="   … "
    )


def _make_keys() -> KeyBindings:
    """Return key bindings: Enter sends, and Alt-Enter inserts a line break."""
    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys


def _take(answers: Answers, line: str, words: StreamedWords) -> None:
    """Process a command, a suggestion's number or a message, without waiting for the answer."""
    talk = answers.talk
    before = talk.conversation
    words.begin()
    try:
        turn = _send(answers, line)
    except Unavailable:
        raise
    except ParleyError as error:
        talk.note(f"parley: {clean(error)}")
        turn = None
    answers.expect(before, turn)
    if talk.conversation is not before:
        listen(talk.conversation.client, talk.conversation.session_id, words)


def _send(answers: Answers, line: str) -> Turn | None:
    talk, command = answers.talk, find_command(line)
    if command is not None:
        with answers.shown:  # keeps answers out of the command's output
            command(talk)
        return None
    action = choose_action(talk.turn, line)
    if action is not None:
        talk.note(f"› {clean(action['label'])}")
        return talk.conversation.act(action["name"], action["payload"])
    if line.lower() in PARTING:
        talk.note("To leave the chat, press Ctrl-D or type /quit.")
    elif (unknown := find_unknown(line)) is not None:
        talk.note(
            f"The chat has no command {unknown}, so the assistant answers. /help lists the chat's commands."
        )
    return talk.conversation.say(line)
