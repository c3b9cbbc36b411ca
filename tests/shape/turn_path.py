"""The way of one turn through the code: `python -m tests.shape.turn_path [--all]` prints it.

Counts, of the project's own code outside the tests, the files and functions a turn passes, its calls, those that
cross from file to file, and how deep they go. In memory, on System 1; what runs in other threads is not seen.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Final

from parley.simulator import Simulator

REPOSITORY: Final = Path(__file__).parents[2]
PACKAGES: Final = ("orchestrator", "domains", "internal_flows", "workers", "gateway", "parley")
TURNS: Final = 3
TEXT: Final = "Book a flight from Oslo to Madrid tomorrow"


@cache
def file_of(code: CodeType) -> str | None:
    """Return the file of the project's own code from the repository's root, and None for other people's."""
    path = Path(code.co_filename)
    if not path.is_relative_to(REPOSITORY):
        return None
    place = path.relative_to(REPOSITORY)
    return place.as_posix() if place.parts[0] in PACKAGES else None


@dataclass(slots=True)
class TurnPath:
    """Follows calls as Python's profiler reports them.

    `_frames`: those that are being executed, outermost first, each with the file of the innermost own frame up to
    it and the number of own frames up to it. A coroutine that waits leaves, and enters again when it goes on.
    `_names`: of the own frames among them, as far as they have been seen.
    """

    functions: set[CodeType] = field(default_factory=set)
    calls: Counter[str] = field(default_factory=Counter)
    crossings: Counter[tuple[str, str]] = field(default_factory=Counter)
    deepest: list[str] = field(default_factory=list)
    _frames: list[tuple[str | None, int]] = field(default_factory=list)
    _names: list[str] = field(default_factory=list)

    @property
    def depth(self) -> int:
        return len(self.deepest)

    def follow(self, frame: FrameType, event: str, _argument: object) -> None:
        """Take one event; to be given to `sys.setprofile`."""
        if event == "call":
            self._enter(frame.f_code)
        elif event == "return" and self._frames:
            self._frames.pop()

    def _enter(self, code: CodeType) -> None:
        caller, depth = self._frames[-1] if self._frames else (None, 0)
        file = file_of(code)
        if file is None:
            self._frames.append((caller, depth))
            return
        self._frames.append((file, depth + 1))
        self._names[depth:] = [f"{file}: {code.co_name}"]
        self.functions.add(code)
        self.calls[file] += 1
        if depth >= len(self.deepest):
            self.deepest = self._names.copy()
        if caller not in {None, file}:
            self.crossings[caller or "", file] += 1

    def report(self, *, every: bool = False) -> str:
        """Render the counts, and with `every` each crossing and file, the most frequent first."""
        passed = f"files {len(self.calls)}  calls {self.calls.total()}  functions {len(self.functions)}"
        crossed = f"crossings {self.crossings.total()} on {len(self.crossings)} ways  depth {self.depth}"
        lines = [f"{passed}  {crossed}"]
        if every:
            lines += [
                f"{count:5}  {here} -> {there}" for (here, there), count in self.crossings.most_common()
            ]
            lines += [f"{count:5}  {file}" for file, count in self.calls.most_common()]
            lines += ["The deepest call:", *self.deepest]
        return "\n".join(lines)


async def _follow_turns(text: str) -> list[TurnPath]:
    simulator = Simulator.of("travel")
    await simulator.converse().say(text)  # what is made once, such as a template, is made now
    return [await _follow_turn(simulator, text) for _ in range(TURNS)]


async def _follow_turn(simulator: Simulator, text: str) -> TurnPath:
    talk = simulator.converse()
    path = TurnPath()
    gc.disable()  # what is collected may call code of the project's own
    sys.setprofile(path.follow)
    try:
        await talk.say(text)
    finally:
        sys.setprofile(None)
        gc.enable()
    return path


def follow_turn(text: str = TEXT) -> TurnPath:
    """Carry out a turn several times and return the shortest way: a slow machine adds live events to a turn."""
    return min(asyncio.run(_follow_turns(text)), key=lambda path: path.crossings.total())


if __name__ == "__main__":
    print(follow_turn().report(every="--all" in sys.argv[1:]))
