"""Lines of a pipe: those that form one turn, and invalid ones."""

from __future__ import annotations

import io

import pytest

from orchestrator.errors import InputTooLarge, InvalidInput
from parley.terminal.conversation import Conversation, answer_of
from parley.terminal.pipe import LONGEST_LINE, decode, read_lines
from parley_client import Client
from tests.cases import for_each


def test_each_line_is_one_turn_also_without_a_last_line_end() -> None:
    assert list(read_lines(io.BytesIO(b"one\r\ntwo\n\nfour"))) == [b"one", b"two", b"", b"four"]


@pytest.mark.parametrize("length", [LONGEST_LINE - 1, LONGEST_LINE])
def test_a_line_of_the_longest_length_is_taken(length: int) -> None:
    (line,) = read_lines(io.BytesIO(b"a" * length + b"\n"))
    assert decode(line) == "a" * length


@for_each("length", [LONGEST_LINE + 1, LONGEST_LINE + 2, 1_000_000, 3 * LONGEST_LINE + 2])
def test_an_over_long_line_is_one_mistake_and_the_next_line_is_read(length: int) -> None:
    lines = list(read_lines(io.BytesIO(b"a" * length + b"\nnext\n")))
    assert len(lines) == 2
    assert len(lines[0]) <= LONGEST_LINE + 2
    with pytest.raises(InputTooLarge, match="longer than 65536 bytes"):
        decode(lines[0])
    assert decode(lines[1]) == "next"


def test_bytes_that_are_no_text_are_told_with_their_place() -> None:
    with pytest.raises(InvalidInput, match="not valid UTF-8 at byte 3"):
        decode(b"abc\xff")


def test_what_can_be_downloaded_is_told_with_its_whole_address() -> None:
    with Client("http://here.test:8600/") as client:
        told = Conversation(client, "session_1").words_of(
            {"reply": "Exported: /v1/exports/abc.def", "status": "done"}
        )

    assert told == "Exported: http://here.test:8600/v1/exports/abc.def"


def test_a_turn_without_reply_says_how_it_ended() -> None:
    assert answer_of({"status": "done", "reply": "Hello."}) == "Hello."
    assert answer_of({"status": "quarantined", "reply": None}) == "(no answer: the turn is quarantined)"
