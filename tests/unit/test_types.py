"""JSON values with characters that no store accepts."""

from __future__ import annotations

import orjson

from orchestrator.types import drop_nul, holds_nul
from tests.cases import for_each

WITH = ["a\0b", "\0", "\0\0", "\\\0", "\\\\\0x"]
WITHOUT = ["", "ab", "\\u0000", "\\\\u0000", "u0000", "\x01"]


@for_each("text", WITH, ids=repr)
def test_a_nul_is_found_in_written_json_and_left_out(text: str) -> None:
    written = orjson.dumps({"text": [text]})

    assert holds_nul(written)
    assert orjson.loads(drop_nul(written.decode())) == {"text": [text.replace("\0", "")]}


@for_each("text", WITHOUT, ids=repr)
def test_what_only_looks_like_a_nul_stays(text: str) -> None:
    written = orjson.dumps({"text": [text]})

    assert not holds_nul(written)
    assert orjson.loads(drop_nul(written.decode())) == {"text": [text]}
