"""The code path of a turn: `python -m tests.shape.turn_path [--all]` prints it.

Counts files and functions of the project's code outside the tests, all calls, calls between files, and the
depth. Runs in memory with System 1. Other threads are not counted.
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
    """Return the path of a project file from the repository root, or None for other code."""
    path = Path(code.co_filename)
    if not path.is_relative_to(REPOSITORY):
        return None
    place = path.relative_to(REPOSITORY)
    return place.as_posix() if place.parts[0] in PACKAGES else None


@dataclass(slots=True)
class TurnPath:
    """A tracer of calls, for Python's profiler events.

    `_frames`: running frames, outermost first, each with the file of the innermost project frame so far and
    the number of project frames so far. A suspended coroutine leaves, and enters again on resumption.
    `_names`: names of the project frames among them, as far as seen.
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
        """Handle an event of `sys.setprofile`."""
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
        """Format the counts. `every`: also list each call between files and each file, most frequent first."""
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
    await simulator.converse().say(text)  # create objects that exist once, such as templates, before counting
    return [await _follow_turn(simulator, text) for _ in range(TURNS)]


async def _follow_turn(simulator: Simulator, text: str) -> TurnPath:
    talk = simulator.converse()
    path = TurnPath()
    gc.disable()  # garbage collection may call project code
    sys.setprofile(path.follow)
    try:
        await talk.say(text)
    finally:
        sys.setprofile(None)
        gc.enable()
    return path


def follow_turn(text: str = TEXT) -> TurnPath:
    """Run a turn several times and return the shortest path, because slow machines add live events."""
    return min(asyncio.run(_follow_turns(text)), key=lambda path: path.crossings.total())


if __name__ == "__main__":
    print(follow_turn().report(every="--all" in sys.argv[1:]))
