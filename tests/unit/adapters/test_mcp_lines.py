"""The encoding that limits the lines of MCP servers."""

import codecs
import json

import pytest

from orchestrator.adapters.tools.mcp_lines import limited_encoding
from tests.cases import for_each

MOST = 40


def decode(*chunks: bytes) -> list[str]:
    decoder = codecs.getincrementaldecoder(limited_encoding(MOST))(errors="replace")
    return "".join(map(decoder.decode, chunks)).split("\n")[:-1]


def ids(*chunks: bytes) -> list[object]:
    """Return each line's ID, or the line if it is not an error."""
    return [json.loads(line)["id"] if "error" in line else line for line in decode(*chunks)]


@pytest.mark.parametrize("size", [1, 3, 1_000])
def test_lines_within_the_limit_are_kept(size: int) -> None:
    """In UTF-8, also if a character arrives in two chunks, and with invalid bytes replaced."""
    sent = f"eins\n\n{'ü' * (MOST // 2)}\n".encode() + b"\xff\nnext"
    chunks = [sent[at : at + size] for at in range(0, len(sent), size)]

    assert decode(*chunks) == ["eins", "", "ü" * (MOST // 2), "\ufffd"]


@for_each(
    ("line", "identifier"),
    [
        ('{"jsonrpc": "2.0", "id": 7, "result": {"text', 7),
        ('{"id": "a", "result": [1, 2, 3, 4, 5, 6, 7, 8', "a"),
        ('{"result": {"text": "xxxxxxxxxxxxxxxxx"}, "id": 7', None),  # may be the start of 77
        ('{"id": 7, "method": "sampling/createMessage", "', None),
        ("[" * 50, None),
        ("x" * 50, None),
    ],
)
def test_an_overlong_line_becomes_an_error(line: str, identifier: object) -> None:
    """Before the line's end, and only once."""
    sent = line.encode()

    assert ids(sent, b"z" * 1_000, b"z\nnext\n") == [identifier, "next"]
    assert ids(sent + b"\nnext\n") == [identifier, "next"]


def test_another_encoding_is_not_ours() -> None:
    with pytest.raises(LookupError):
        codecs.lookup("mcp_lines_many")
