"""How long other sessions' turns take while one session uses a tool that hangs, lies or gives 10 MB.

`python -m benchmarks.hurtful_tools` prints the median turn of the others, alone and beside each such
tool, and their ratio. Everything runs in one process on one loop, as in a worker.
"""

from __future__ import annotations

import asyncio
import logging
import statistics
import tempfile
import time
from pathlib import Path

import structlog

from orchestrator.rehearsal import Rehearsal

ROUNDS = 6
TURNS = 40

BAD = {
    "hang": "a thread that hangs",
    "deaf": "deaf to cancellation",
    "lie": "another schema",
    "huge": "10 MB",
}

SERVICES = """\
import asyncio, threading
from orchestrator.domain.services import Service

RELEASED = threading.Event()


class Things(Service):
    async def ring(self):
        return {"rung": True}

    def hang(self):
        RELEASED.wait()
        return {}

    async def deaf(self):
        while not RELEASED.is_set():
            try:
                await asyncio.sleep(0.05)
            except asyncio.CancelledError:
                continue
        return {}

    async def lie(self):
        return {"text": 7}

    async def huge(self):
        return {"text": "x" * 10_000_000}

    async def release(self):
        RELEASED.set()
        return {}
"""

FLOW = """\
  use_{name}:
    dax: "0{number}1"
    intent: Read
    description: Use {name}
    examples: [use {name}, please use {name}, "{name} please", try {name} now]
    tools: [{{tool_id: thing_{name}}}]
"""

TOOL = """\
  thing_{name}:
    service: Things.{name}
    idempotent: true
    timeout_ms: 100
    max_retries: 0
    input_schema: {{type: object, properties: {{}}}}
    output_schema: {{type: object, properties: {{text: {{type: string}}}}}}
"""


def write_domain(folder: Path) -> Path:
    names = ["ring", *BAD, "release"]
    flows = (FLOW.format(name=name, number=number) for number, name in enumerate(names, 1))
    (folder / "ontology.yaml").write_text("flows:\n" + "".join(flows))
    (folder / "tools.yaml").write_text("tools:\n" + "".join(TOOL.format(name=name) for name in names))
    (folder / "services.py").write_text(SERVICES)
    return folder


async def other_turns(rehearsal: Rehearsal) -> list[float]:
    """Seconds that each turn took; every one is in a session of its own, for nothing may be said twice."""
    taken: list[float] = []
    for _ in range(TURNS):
        started = time.perf_counter()
        turn = await rehearsal.converse().say("use ring")
        taken.append(time.perf_counter() - started)
        assert [used["status"] for used in turn["tools"]] == ["ok"], turn
        await asyncio.sleep(0.002)  # a user reads before the next message
    return taken


async def beside(rehearsal: Rehearsal, name: str) -> list[float]:
    """The same while another session uses the tool again and again."""

    enough = asyncio.Event()

    async def use() -> None:
        while not enough.is_set():
            turn = await rehearsal.converse().say(f"use {name}")
            assert all(used["status"] in {"timeout", "server_error"} for used in turn["tools"]), turn
            await asyncio.sleep(0.1)

    using = asyncio.create_task(use())
    try:
        return await other_turns(rehearsal)
    finally:
        enough.set()
        await using


async def main() -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    with tempfile.TemporaryDirectory() as folder:
        rehearsal = Rehearsal.of(write_domain(Path(folder)))
        await other_turns(rehearsal)  # warm
        for name, what in BAD.items():
            alone: list[float] = []
            together: list[float] = []
            for _ in range(ROUNDS):
                alone += await other_turns(rehearsal)
                together += await beside(rehearsal, name)
            median, other = statistics.median(alone) * 1000, statistics.median(together) * 1000
            print(
                f"{what:22} alone {median:6.2f} ms  beside {other:6.2f} ms  ratio {other / median:.2f}",
                flush=True,
            )
        await rehearsal.converse().say("use release")


if __name__ == "__main__":
    asyncio.run(main())
