"""Generate the benchmark tables in `docs/performance.md` and `README.md` from stored results."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

from benchmarks.environment import ROOT
from benchmarks.waiting import SESSIONS, WAIT_S

KEPT: Final = Path(__file__).parent / "results.json"
BEGIN: Final = "<!-- measured: begin -->\n"
END: Final = "<!-- measured: end -->"
YARDSTICK: Final = "by hand"
SAME_WORK: Final = {
    "by hand": "a hand-written Celery task",
    "echo": "**Parley**",
    "procrastinate": "procrastinate",
    "LangGraph, leanest": "LangGraph",
    "DBOS": "DBOS",
}


def draw(kept: dict[str, Any]) -> None:
    for page, make in PAGES.items():
        page.write_text(replace_section(page.read_text(encoding="utf-8"), make(kept)), encoding="utf-8")


def replace_section(page: str, text: str) -> str:
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{text}{END}{after}"


def read_results() -> dict[str, Any]:
    return json.loads(KEPT.read_text(encoding="utf-8"))


def make_summary(kept: dict[str, Any]) -> str:
    about = kept["environment"]
    rounds = {row["name"]: row for row in kept["rounds"] if row["phase"] == "closed loop"}
    waiting = {row["candidate"]: row for row in kept["waiting"]}
    hand = rounds[YARDSTICK]["cpu_us"]
    work = "Medians for identical turns (load 8 KB of state, change it, commit it in order)"
    waited = f"throughput with {SESSIONS} sessions waiting for a model, % of ideal"
    lines = [
        f"{work} on {about['cores']} cores, {kept['measured']}:",
        "",
        f"| | turns/s | CPU per turn, relative to the hand-written task | {waited} |",
        "| --- | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {shown} | {median(rounds[name]['turns_per_s']):.0f} "
        f"| {_ratio(rounds[name]['cpu_us']['worker'], hand['worker'])} "
        f"| {waiting[name]['share of the ideal']:.0%} |"
        for name, shown in SAME_WORK.items()
    ]
    return "\n".join([*lines, ""])


def make_tables(kept: dict[str, Any]) -> str:
    """Return the tables for `docs/performance.md`. Ratios are relative to the hand-written task in the same round."""
    about = kept["environment"]
    machine = f"{about['cores']} cores, {about['system']}, Python {about['python']}, load {about['load']}"
    spread = max(max(row["turns_per_s"]) / min(row["turns_per_s"]) for row in kept["rounds"])
    lines = [
        f"Measured on {kept['measured']}: {machine}. Other programs were running, and a row's rounds differed by a",
        f"factor of up to {spread:.1f}, so differences by a factor below two aren't significant.",
        "",
    ]
    rows = {(row["phase"], row["name"]): row for row in kept["rounds"]}
    for phase in dict.fromkeys(row["phase"] for row in kept["rounds"]):
        lines += [
            f"| {phase} | turns/s | × by hand | worker CPU, µs per turn | × by hand | PostgreSQL CPU | rounds |",
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
    if kept["waiting"]:
        what = f"{SESSIONS} sessions, model latency {WAIT_S:.0f} s, one worker process"
        lines += [
            f"| {what} | turns/s | % of ideal | p50, ms | p99, ms | worker CPU, µs per turn | added memory, MB |",
            "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
        ]
    for row in kept["waiting"]:
        lines.append(
            f"| {row['candidate']} | {row['turns/s']:.0f} | {row['share of the ideal']:.0%} | {row['p50 ms']:.0f} "
            f"| {row['p99 ms']:.0f} | {row['worker CPU us']:.0f} | {row['MB more']:.0f} |"
        )
    return "\n".join([*lines, ""]) + "\n"


def _ratio(ours: Sequence[float], theirs: Sequence[float]) -> str:
    return f"{median(one / other for one, other in zip(ours, theirs, strict=False)):.2f}"


PAGES: Final[Mapping[Path, Callable[[dict[str, Any]], str]]] = {
    ROOT / "docs/performance.md": make_tables,
    ROOT / "README.md": make_summary,
}
