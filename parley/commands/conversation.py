"""A conversation over HTTP: one line in, one turn through the queue, one answer out."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from orchestrator.client import Client
from orchestrator.errors import InputTooLarge, InvalidInput, ParleyError, Unavailable
from parley.commands.output import print_json, say

LONGEST_LINE = 64 * 1024
"""Bytes; the gateway takes no larger body."""

_WAIT_S = 30.0
_RUNNING = frozenset({"queued", "running"})


@dataclass(frozen=True, slots=True)
class Conversation:
    """One session of a gateway."""

    client: Client
    session_id: str

    @classmethod
    def begin(cls, client: Client, *, domain: str | None, session_id: str | None) -> Conversation:
        """Begin a session, or continue the one that has this identifier already."""
        made = client.create_session(domain, session_id=session_id)
        return cls(client, str(made["session_id"]))

    def ask(self, text: str) -> dict[str, Any]:
        """One turn, waited for to its end; the turn object."""
        turn = self.client.submit(self.session_id, text, wait_s=_WAIT_S)
        while turn["status"] in _RUNNING:
            turn = self.client.turn(str(turn["turn_id"]), wait_s=_WAIT_S)
        return turn


def talk_in_pipe(conversation: Conversation, stream: BinaryIO, *, as_json: bool) -> None:
    """Each line is one turn; a line that cannot be one is reported, and the next is taken."""
    for number, line in enumerate(read_lines(stream), start=1):
        try:
            text = decode(line)
            if not as_json:
                print(f"You: {text}", flush=True)
            _print_turn(conversation.ask(text), as_json=as_json)
        except Unavailable:
            raise
        except ParleyError as error:
            _report(error, f"line {number}", as_json=as_json)


def talk_in_terminal(conversation: Conversation, *, as_json: bool) -> None:
    """Prompt until Ctrl-D or Ctrl-C."""
    from prompt_toolkit import PromptSession  # noqa: PLC0415  # slow to import, and only terminals need it
    from prompt_toolkit.history import InMemoryHistory  # noqa: PLC0415

    say(f"Session {conversation.session_id}. Ctrl-D ends the conversation.")
    prompt: PromptSession[str] = PromptSession(history=InMemoryHistory())
    while True:
        try:
            text = prompt.prompt("You: ").strip()
        except (EOFError, KeyboardInterrupt):
            return
        if not text:
            continue
        try:
            _print_turn(conversation.ask(text), as_json=as_json)
        except Unavailable:
            raise
        except ParleyError as error:
            _report(error, "that", as_json=as_json)


def read_lines(stream: BinaryIO) -> Iterator[bytes]:
    """Lines without their end; of an over-long one only the first `LONGEST_LINE` + 1 bytes are kept."""
    while line := stream.readline(LONGEST_LINE + 2):
        kept = line
        while not line.endswith(b"\n") and (line := stream.readline(LONGEST_LINE)):
            pass
        yield kept.rstrip(b"\r\n")


def decode(line: bytes) -> str:
    """The text of a line. Raises InvalidInput when it is too long or not UTF-8."""
    if len(line) > LONGEST_LINE:
        raise InputTooLarge(f"The line is longer than {LONGEST_LINE} bytes.", field="text")
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(f"The line is not valid UTF-8 at byte {error.start}.", field="text") from None


def _print_turn(turn: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(turn)
    else:
        print(f"Parley: {answer_of(turn)}", flush=True)


def answer_of(turn: dict[str, Any]) -> str:
    """What the user reads: the reply, or the way the turn ended without one."""
    return turn.get("reply") or f"(no answer: the turn is {turn['status']})"


def _report(error: ParleyError, place: str, *, as_json: bool) -> None:
    sys.stdout.flush()
    if as_json:
        print_json({"status": "rejected", "error": {"code": error.code, "message": str(error)}})
    say(f"parley: {place}: {error}")
