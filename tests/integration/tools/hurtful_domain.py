"""A domain with a good tool and tools that hang, return wrong data or flood; see `benchmarks/hurtful.py`.

Every hanging tool exists twice: with a short timeout, for one session with repeated calls, and with a long
timeout (`crowd_…`), so that many calls hang concurrently.
"""

from __future__ import annotations

from pathlib import Path

BAD = {
    "hang": "a thread that hangs",
    "deaf": "deaf to cancellation",
    "lie": "another schema",
    "huge": "10 MB",
    "nul": "a NUL character",
}
CROWDS = {
    "crowd_hang": "threads that hang",
    "crowd_deaf": "deaf to cancellation",
}
SHORT_MS, LONG_MS = 100, 60_000

SERVICES = """\
import asyncio, threading
from orchestrator.domain.services import Service


class Things(Service):
    released = threading.Event()

    def ring(self):
        return {"rung": True}

    def hang(self):
        self.released.wait()
        return {}

    async def deaf(self):
        released = self.released
        while not released.is_set():
            try:
                await asyncio.sleep(0.05)
            except asyncio.CancelledError:
                continue
        return {}

    async def lie(self):
        return {"text": 7}

    async def huge(self):
        return {"text": "x" * 10_000_000}

    async def nul(self):
        return {"text": "a\\0b"}

    async def release(self):
        # Whatever hangs until now goes on; what comes later hangs again.
        held, type(self).released = self.released, threading.Event()
        held.set()
        return {}

    crowd_hang, crowd_deaf = hang, deaf
"""

FLOW = """\
  use_{name}:
    intent: Read
    description: Use {word}
    examples: [use {word}, please use {word}, "{word} please", try {word} now]
    tools: [{{tool_id: thing_{name}}}]
"""

TOOL = """\
  thing_{name}:
    service: Things.{name}
    idempotent: true
    timeout_ms: {timeout_ms}
    max_retries: 0
    input_schema: {{type: object, properties: {{}}}}
    output_schema: {{type: object, properties: {{text: {{type: string}}}}}}
"""


def write_domain(folder: Path) -> Path:
    """Write the domain's files into an empty folder."""
    names = ["ring", *BAD, *CROWDS, "release"]
    flows = [FLOW.format(name=name, word=word_of(name)) for name in names]
    tools = [TOOL.format(name=name, timeout_ms=_allowed_ms(name)) for name in names]
    (folder / "ontology.yaml").write_text("flows:\n" + "".join(flows))
    (folder / "tools.yaml").write_text("tools:\n" + "".join(tools))
    (folder / "services.py").write_text(SERVICES)
    return folder


def word_of(name: str) -> str:
    """Return the user's word for the tool."""
    return {"crowd_hang": "swamp", "crowd_deaf": "mule"}.get(name, name)


def _allowed_ms(name: str) -> int:
    return SHORT_MS if name in BAD else LONG_MS
