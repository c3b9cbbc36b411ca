"""Secrets from files: ``DATABASE_URL_FILE`` names a file that holds ``DATABASE_URL``, as containers get secrets."""

from __future__ import annotations

from collections.abc import MutableMapping
from pathlib import Path
from typing import Final

from orchestrator.errors import InvalidInput

SECRETS: Final = (
    "DATABASE_URL",
    "REDIS_URL",
    "PARLEY_BROKER_URL",
    "OPENAI_API_KEY",
    "PARLEY_API_KEY",
    "FLOWER_BASIC_AUTH",
)
"""Variables that may be given by a file."""


def take_secret_files(environment: MutableMapping[str, str]) -> None:
    """Replace each ``NAME_FILE`` by ``NAME``; an empty file leaves the name unset.

    Raises:
        InvalidInput: both are set, or the file cannot be read.
    """
    for name in SECRETS:
        path = environment.pop(f"{name}_FILE", "")
        if not path:
            continue
        if environment.get(name):
            raise InvalidInput(f"{name} and {name}_FILE are both set; keep one of them.", field=name)
        value = _read(Path(path), name)
        if value:
            environment[name] = value


def _read(path: Path, name: str) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{name}_FILE: {path} cannot be read: {error}.", field=f"{name}_FILE") from error
