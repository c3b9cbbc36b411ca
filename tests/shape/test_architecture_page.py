"""`docs/architecture.md` lists the same steps, components, kinds and endings as the code, in order."""

from __future__ import annotations

import re
from typing import Final

from orchestrator.agent.messages import MESSAGES
from orchestrator.agent.steps import STEPS as TURN_STEPS
from orchestrator.nlu.readers import READERS
from orchestrator.pex.execution import ENDINGS
from orchestrator.pex.steps import STEPS as PEX_STEPS
from orchestrator.res.steps import STEPS as RES_STEPS
from tests.cases import for_each
from tests.shape.sources import REPOSITORY

PAGE: Final = (REPOSITORY / "docs" / "architecture.md").read_text(encoding="utf-8")


def section(heading: str) -> str:
    return PAGE.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]


def rows(heading: str) -> list[str]:
    """Return the first cells of the table under a heading, without its header."""
    return re.findall(r"^\| ([\w: ]+) \|", section(heading), re.MULTILINE)[1:]


def arrows(heading: str) -> list[str]:
    (line,) = re.findall(r"^```\n(.*)\n```$", section(heading), re.MULTILINE)
    return re.findall(r"[a-z_]+", line.split("  ")[0])


def reader_name(make: object) -> str:
    module, name = make.__module__.rsplit(".", 1)[1], make.__name__  # type: ignore[attr-defined]
    return module if name == "make" else f"{module}: {name.removeprefix('make_')}"


@for_each(
    ("told", "listed"),
    [
        (rows("Inside the Agent"), ["load", *(step.__name__ for step in TURN_STEPS), "record"]),
        (rows("Inside NLU"), [reader_name(make) for make in READERS]),
        (
            [cell.replace(" ", "_") for cell in rows("What a message does to the stack")],
            [kind.value for kind in MESSAGES],
        ),
        (arrows("Inside PEX"), [step.__name__ for step in PEX_STEPS if step.__name__ != "recover"]),
        (arrows("Inside RES"), [step.__name__ for step in RES_STEPS]),
        (
            re.findall(r"`([A-Z]\w+)`", section("Inside PEX").split("The endings", 1)[1].split("\n", 1)[0]),
            [ending.__name__ for ending in ENDINGS],
        ),
    ],
    ids=["steps of a turn", "readers", "kinds of message", "steps of PEX", "steps of RES", "endings"],
)
def test_the_page_follows_the_code(told: list[str], listed: list[str]) -> None:
    assert told == listed
