"""How commands speak: results on standard output, everything about the run on standard error."""

from __future__ import annotations

import os
import sys
from typing import Any

import orjson


def say(message: str) -> None:
    """A line about the run itself."""
    print(message, file=sys.stderr, flush=True)


def print_json(value: Any) -> None:
    """One JSON value on one line."""
    sys.stdout.write(orjson.dumps(value).decode() + "\n")
    sys.stdout.flush()


def note_models() -> None:
    """Say so when no model is configured."""
    if not (os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL")):
        say("No OPENAI_API_KEY: running on System 1 and direct mode, without a language model.")
