"""The search of the noisy run finds leaks in every encoding. Otherwise the noisy run would prove nothing."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from urllib.parse import quote, quote_plus, urlencode

from tests.cases import for_each
from tests.integration.noise.searching import find_leaks

WORD = "canary/key+1 ü"


def celery_message(text: str) -> str:
    body = b64encode(json.dumps([[], {"text": text}, {}]).encode()).decode()
    return json.dumps({"body": body, "headers": {"task": "x"}, "properties": {"body_encoding": "base64"}})


WRITINGS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "JSON": lambda word: json.dumps({"a": word}),
    "JSON with letters": lambda word: json.dumps({"a": word}, ensure_ascii=False),
    "JSON in JSON": lambda word: json.dumps({"line": json.dumps({"a": word})}),
    "JSON with slashes": lambda word: json.dumps(word).replace("/", "\\/"),
    "address": lambda word: f"https://u:{quote(word, safe='')}@h/",
    "path": lambda word: f"/x/{quote(word)}/y",
    "query": lambda word: urlencode({"q": word}),
    "plus": quote_plus,
    "base64": lambda word: b64encode(word.encode()).decode(),
    "basic": lambda word: "Authorization: Basic " + b64encode(f"user:{word}".encode()).decode(),
    "for addresses": lambda word: urlsafe_b64encode(f"ab{word}".encode()).decode().rstrip("="),
    "base64 in text": lambda word: f"key={b64encode(b'x' + word.encode()).decode()};",
    "a message of Celery": celery_message,
    "an address in a message": lambda word: celery_message(f"https://h/?k={quote_plus(word)}"),
}


@for_each("writing", WRITINGS, ids=str)
def test_a_planted_word_is_found(writing: str) -> None:
    content = f"before {WRITINGS[writing](WORD)} after".encode()
    (leak,) = find_leaks({"there": content}, {"the key": WORD, "another": "canary/key+2"})
    assert (leak.place, leak.word) == ("there", "the key")


def test_what_is_not_there_is_not_found() -> None:
    content = "".join(writing("something else") for writing in WRITINGS.values()).encode()
    assert find_leaks({"there": content, "nothing": b""}, {"the key": WORD}) == []


def test_bytes_that_are_no_text_are_searched_too() -> None:
    content = b"\x00\xff\x0a\x10" + WORD.encode() + b"\xfe\x12"
    assert [leak.word for leak in find_leaks({"span": content}, {"the key": WORD})] == ["the key"]
