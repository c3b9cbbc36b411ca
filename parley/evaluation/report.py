"""Write the report of an evaluation as one HTML page that needs nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader

from orchestrator.types import JsonObject

_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=True, lstrip_blocks=True
)


def write_report(runs: Sequence[JsonObject], findings: Sequence[str]) -> str:
    """Write the report of the last run, its figures beside those of the runs before it.

    `findings`: what is below its bound, or worse than before.
    """
    run = runs[-1]
    flows = sorted({name for cell in run["confusion"] for name in (cell["expected"], cell["taken"])})
    most = max((cell["turns"] for cell in run["confusion"]), default=1)
    cells = [
        {
            **cell,
            "row": flows.index(cell["expected"]),
            "column": flows.index(cell["taken"]),
            "weight": round(0.2 + 0.35 * cell["turns"] / most, 2),  # pale enough for the number on it
            "wrong": cell["expected"] != cell["taken"],
        }
        for cell in run["confusion"]
    ]
    page = _TEMPLATES.get_template("report.html.j2")
    return page.render(run=run, runs=runs, flows=flows, cells=cells, findings=findings)
