"""Commands in the documentation, each compared with its definition."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from parley.main import COMMANDS, load_command

ROOT = Path(__file__).resolve().parents[3]
PAGES = (
    *sorted((ROOT / "docs").glob("*.md")),
    ROOT / "README.md",
    ROOT / "docker-compose.yml",
    ROOT / "Dockerfile",
    ROOT / "deploy" / "prometheus" / "alerts.yml",
    *sorted((ROOT / "k8s").glob("**/*.yaml")),
)
_FENCE = re.compile(r"^```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`([^`\n]+)`")
# Ends of a command in a shell line.
_ENDS = frozenset({"|", ">", "<", "&&", ";", "&", "2>"})


@dataclass(frozen=True)
class Documented:
    """A documented command. `words`: its words."""

    page: str
    words: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.page}: {shlex.join(self.words)}"


def documented(program: str) -> list[Documented]:
    """Yield every use of a program, in page order."""
    found: list[Documented] = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        name = page.relative_to(ROOT).as_posix()
        found += [Documented(name, words) for words in _commands(text) if words[0] == program]
    return found


def _commands(text: str) -> Iterator[tuple[str, ...]]:
    """Yield the commands in a text's code, including commands within other commands."""
    fenced = [line for block in _FENCE.findall(text) for line in block.replace("\\\n", " ").splitlines()]
    inline = _INLINE.findall(_FENCE.sub("", text))
    for line in [*fenced, *inline]:
        try:
            words = shlex.split(line, comments=True)
        except ValueError:  # not a shell line
            continue
        yield from _parts(words)


def _parts(words: list[str]) -> Iterator[tuple[str, ...]]:
    part: list[str] = []
    for word in [*words, ";"]:
        if word not in _ENDS:
            part.append(word)
            continue
        if part:
            yield tuple(part)
        if "--" in part[:-1]:  # the command of `kubectl exec`
            yield tuple(part[part.index("--") + 1 :])
        if part[:4] == ["docker", "compose", "run", "--rm"] and part[4] == "migrate" and part[5:]:
            yield ("parley", *part[5:])
        part = []


def complaint(words: tuple[str, ...]) -> str | None:
    """Return why `parley` would reject the command, or None if it wouldn't."""
    rest = [word.strip("[]") for word in words[1:] if word != "…"]
    if not rest or rest[0].startswith("-") or re.fullmatch(r"[A-Z_|]+", rest[0]):
        return None
    if rest[0] not in COMMANDS:
        return f"there is no `{rest[0]}`"
    command: Any = load_command(rest.pop(0))
    while rest and hasattr(command, "commands") and not rest[0].startswith("-"):
        if re.fullmatch(r"[A-Z_|]+", rest[0]):
            return None  # a placeholder for any subcommand
        if rest[0] not in command.commands:
            return f"there is no `{rest[0]}`"
        command = command.commands[rest.pop(0)]
    known = {name for option in command.params for name in (*option.opts, *option.secondary_opts)}
    known |= {"--help", "--verbose"}
    unknown = [word for word in rest if word.startswith("--") and word.partition("=")[0] not in known]
    return f"there is no {', '.join(unknown)}" if unknown else None
