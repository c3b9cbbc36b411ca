"""Reads docker-compose.yml as compose does when no variable is set."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[3]
COMPOSE_FILE = ROOT / "docker-compose.yml"
OURS = ("migrate", "gateway", "turns", "internal", "beat", "flower", "doctor")
"""The services that run the project's image."""


def read_compose(path: Path = COMPOSE_FILE) -> dict[str, Any]:
    """The file with its variables at their default values, ``$$`` undone and merges done."""
    text = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", path.read_text()).replace("$$", "$")
    return yaml.safe_load(text)


def mounts(service: dict[str, Any]) -> dict[str, str]:
    """What a service finds in /run/secrets: the name of the file there, and of the secret."""
    entries = [{"source": entry} if isinstance(entry, str) else entry for entry in service.get("secrets", [])]
    return {entry.get("target", entry["source"]): entry["source"] for entry in entries}


def as_plain_yaml(body: dict[str, Any]) -> str:
    """Without anchors, merges and fragments, for parsers that know only the plain form."""

    class Plain(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True

    kept = {name: value for name, value in body.items() if not name.startswith("x-")}
    return yaml.dump(kept, Dumper=Plain)
