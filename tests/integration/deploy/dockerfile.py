"""Reads a Dockerfile as far as ours goes: stages, instructions in order, what they set."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Instruction:
    name: str
    value: str

    def words(self) -> list[str]:
        """The value as words, from the JSON form or the shell's."""
        return json.loads(self.value) if self.value.startswith("[") else shlex.split(self.value)


@dataclass
class Stage:
    image: str
    name: str
    instructions: list[Instruction] = field(default_factory=list)

    def last(self, name: str) -> Instruction:
        return [instruction for instruction in self.instructions if instruction.name == name][-1]

    def environment(self) -> dict[str, str]:
        """What the stage's ENV instructions set."""
        pairs = [word for entry in self.instructions if entry.name == "ENV" for word in entry.words()]
        return dict(pair.split("=", 1) for pair in pairs)


def read_dockerfile(path: Path = ROOT / "Dockerfile") -> list[Stage]:
    """The stages, with the arguments' default values filled in."""
    stages: list[Stage] = []
    defaults: dict[str, str] = {}
    for instruction in _instructions(path.read_text()):
        if instruction.name == "ARG":
            name, _, value = instruction.value.partition("=")
            defaults[name] = value
        elif instruction.name == "FROM":
            image, _, name = instruction.value.partition(" AS ")
            image = re.sub(r"\$\{(\w+)\}", lambda match: defaults[match[1]], image)
            stages.append(Stage(image, name or str(len(stages))))
        else:
            stages[-1].instructions.append(instruction)
    return stages


def _instructions(text: str) -> list[Instruction]:
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [Instruction(*line.split(maxsplit=1)) for line in joined.splitlines()]


def context_files(ignore: Path = ROOT / ".dockerignore") -> list[Path]:
    """The files that a build is given, relative to the project: the last pattern that matches decides."""
    patterns = [line for line in ignore.read_text().splitlines() if line and not line.startswith("#")]
    tracked = [path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file()]
    return [path for path in tracked if _is_given(path, patterns)]


def _is_given(path: Path, patterns: list[str]) -> bool:
    given = True
    for pattern in patterns:
        keeps = pattern.startswith("!")
        if _matches(path, pattern.removeprefix("!")):
            given = keeps
    return given


def _matches(path: Path, pattern: str) -> bool:
    """A pattern names a path or a folder above it; ``**/`` stands for any depth, ``*`` for one name."""
    expression = re.escape(pattern).replace(r"\*\*/", "(?:.*/)?").replace(r"\*", "[^/]*")
    return re.fullmatch(f"{expression}(?:/.*)?", path.as_posix()) is not None
