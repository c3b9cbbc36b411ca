"""Draws `docs/performance.md` from what was measured: between its two marks, so that the words around stay."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from benchmarks.environment import ROOT

PAGE = ROOT / "docs/performance.md"
BEGIN, END = "<!-- measured: begin -->\n", "<!-- measured: end -->"
YARDSTICK = "by hand"
_SPREAD = """Other programs used the machine, and
rounds of one row differed by up to {spread:.1f} times: differences below twice are not shown by these tables."""


def draw(kept: dict[str, Any]) -> None:
    """Write the table of medians; ratios are of the same round's hand-written task."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}{_tables(kept)}{END}{after}")


def _tables(kept: dict[str, Any]) -> str:
    about = kept["environment"]
    machine = f"{about['cores']} cores, {about['system']}, Python {about['python']}, load {about['load']}"
    spread = max(max(row["turns_per_s"]) / min(row["turns_per_s"]) for row in kept["rounds"])
    lines = [f"Measured on {kept['measured']}: {machine}. {_SPREAD.format(spread=spread)}", ""]
    rows = {(row["phase"], row["name"]): row for row in kept["rounds"]}
    for phase in dict.fromkeys(row["phase"] for row in kept["rounds"]):
        lines += [
            f"| {phase} | turns/s | × by hand | worker CPU, µs a turn | × by hand | PostgreSQL CPU | rounds |",
            "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
        ]
        hand = rows[phase, YARDSTICK]
        for (_, name), row in ((key, row) for key, row in rows.items() if key[0] == phase):
            cpu = row["cpu_us"]
            lines.append(
                f"| {name} | {median(row['turns_per_s']):.0f} | {_ratio(row['turns_per_s'], hand['turns_per_s'])} "
                f"| {median(cpu['worker']):.0f} | {_ratio(cpu['worker'], hand['cpu_us']['worker'])} "
                f"| {median(cpu['postgres']):.0f} | {len(row['turns_per_s'])} |"
            )
        lines.append("")
    return "\n".join(lines) + "\n"


def _ratio(ours: Sequence[float], theirs: Sequence[float]) -> str:
    return f"{median(one / other for one, other in zip(ours, theirs, strict=False)):.2f}"
