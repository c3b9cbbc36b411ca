"""Token counts of requests with the vocabulary of OpenAI's current models, from `bpe-openai`."""

from __future__ import annotations

import json
import warnings
from functools import cache
from typing import Any

from parley.testing.scripted_model import Request


@cache
def _encoding() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # as the library opens its files
        import bpe_openai  # noqa: PLC0415

        return bpe_openai.get_encoding("o200k_base")


def count(value: Any) -> int:
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    return len(_encoding().encode(text))


def parts_of(request: Request) -> dict[str, int]:
    """Return the tokens of a request's messages, tools and schema. Providers add some for each message."""
    body = request.body
    schema = ((body.get("response_format") or {}).get("json_schema") or {}).get("schema")
    said = [(message["role"], count(message.get("content") or "")) for message in request.messages]
    calls = [call["function"] for message in request.messages for call in message.get("tool_calls") or ()]
    return {
        "system": sum(tokens for role, tokens in said if role == "system"),
        "data": sum(tokens for role, tokens in said if role != "system") + sum(map(count, calls)),
        "tools": sum(count(tool["function"]) for tool in body.get("tools") or ()),
        "schema": 0 if schema is None else count(schema),
    }


def tokens_of(request: Request) -> int:
    return sum(parts_of(request).values())
