"""A conversation over a pipe: each line is a turn, and each answer is printed as text or JSON."""

import sys
from collections.abc import Iterator
from typing import BinaryIO

from orchestrator.errors import InputTooLarge, InvalidInput, ParleyError, Unavailable
from parley.output import print_json, say
from parley.signals import raise_if_stopped
from parley.terminal.conversation import Conversation
from parley.terminal.words import LEAVING, plain

LONGEST_LINE = 64 * 1024  # bytes, like the gateway's limit on request bodies


def talk_in_pipe(conversation: Conversation, stream: BinaryIO, *, as_json: bool) -> None:
    """Submit each line as a turn and print the answer, until /quit or /exit. Report and skip rejected lines.

    Raises Unavailable if the gateway does not respond.
    """
    for number, line in enumerate(read_lines(stream), start=1):
        try:
            text = decode(line)
            if text.rstrip() in LEAVING:
                return
            if not as_json:
                print(f"You: {text}", flush=True)
            turn = conversation.ask(text)
            if as_json:
                print_json(turn)
            else:
                print(f"Parley: {plain(conversation.words_of(turn))}", flush=True)
        except Unavailable:
            raise
        except ParleyError as error:
            _report(error, f"line {number}", as_json=as_json)
        raise_if_stopped()


def read_lines(stream: BinaryIO) -> Iterator[bytes]:
    """Yield lines without line endings. Overlong lines are truncated, but stay too long for `decode`."""
    while line := stream.readline(LONGEST_LINE + 2):
        kept = line
        while not line.endswith(b"\n") and (line := stream.readline(LONGEST_LINE)):
            pass
        yield kept.rstrip(b"\r\n")


def decode(line: bytes) -> str:
    """Decode a line. Raises InvalidInput if the line is too long or not UTF-8."""
    if len(line) > LONGEST_LINE:
        raise InputTooLarge(f"The line is longer than {LONGEST_LINE} bytes.", field="text")
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(f"The line is not valid UTF-8 at byte {error.start}.", field="text") from None


def _report(error: ParleyError, place: str, *, as_json: bool) -> None:
    sys.stdout.flush()
    if as_json:
        print_json({"status": "rejected", "error": {"code": error.code, "message": str(error)}})
    say(f"parley: {place}: {error}")
