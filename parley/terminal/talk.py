"""The interactive conversation: prompt with history, streamed answers, a status line, commands."""

from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.patch_stdout import patch_stdout
from rich.console import Console

from orchestrator.errors import NotFound, ParleyError, Unavailable
from parley.terminal.commands import Talk, find_command
from parley.terminal.conversation import Conversation, Turn
from parley.terminal.show import show_turn
from parley.terminal.streamed import StreamedWords, listen
from parley.terminal.words import choose_action, clean, describe_progress

HISTORY = "chat_history"
PROMPT = "You: "


def talk_in_terminal(conversation: Conversation, data_dir: Path) -> None:
    """Prompt until Ctrl-D, Ctrl-C or /quit. What was typed is kept where there is a data folder."""
    session = _make_prompt(data_dir)
    console = Console(highlight=False, markup=False, emoji=False)
    words = StreamedWords(lambda text: print(text, end="", flush=True, file=console.file))
    talk = Talk(conversation, console, lambda label: str(PromptSession[str]().prompt(label)))
    listen(conversation.client, conversation.session_id, words)
    talk.note(f"Session {conversation.session_id}. /help lists commands, Ctrl-D ends the conversation.")
    while not talk.over:
        try:
            with patch_stdout(raw=True):  # answers that come meanwhile stand above the prompt
                line = session.prompt(PROMPT, bottom_toolbar=lambda: talk.status).strip()
        except (EOFError, KeyboardInterrupt):
            return
        if line:
            _take(talk, line, words)


def _make_prompt(data_dir: Path) -> PromptSession[str]:
    history: History = FileHistory(str(data_dir / HISTORY)) if data_dir.is_dir() else InMemoryHistory()
    return PromptSession(
        history=history, multiline=True, key_bindings=_make_keys(), prompt_continuation="   … "
    )


def _make_keys() -> KeyBindings:
    """Let Enter send; Alt-Enter begins a new line, and pasted lines stay together."""
    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys


def _take(talk: Talk, line: str, words: StreamedWords) -> None:
    """Carry out one line of the user: a command, a number, or something said."""
    before = talk.conversation
    try:
        printed = False
        words.begin()
        turn = _answer(talk, line)
        if turn is not None:
            turn = {**turn, "reply": talk.conversation.words_of(turn)}
            printed = words.end(turn)
            _note(talk, turn)
            show_turn(talk.console, turn, printed=printed)
    except Unavailable:
        raise
    except ParleyError as error:
        talk.note(f"parley: {clean(error)}")
    finally:
        words.finish()
    if talk.conversation is not before:
        listen(talk.conversation.client, talk.conversation.session_id, words)


def _answer(talk: Talk, line: str) -> Turn | None:
    command = find_command(line)
    if command is not None:
        do, argument = command
        return do(talk, argument)
    action = choose_action(talk.turn, line)
    if action is not None:
        talk.note(f"› {clean(action['label'])}")
        return talk.conversation.act(action["name"], action["payload"])
    return talk.conversation.ask(line)


def _note(talk: Talk, turn: Turn) -> None:
    talk.turn, talk.progress = turn, ""
    if not (turn.get("flags") or {}).get("has_plan"):
        return
    try:
        talk.progress = describe_progress(talk.conversation.client.plan(talk.conversation.session_id))
    except NotFound:
        return
