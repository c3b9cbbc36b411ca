"""Run many simulated conversations and print the results: `python -m lab.goals --conversations 2300`.

One or more processes run the conversations in batches. Each complete batch is stored, so an interrupted run
resumes if it is restarted with the same commit and output folder. `failures.json` contains the failed conversations.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from tempfile import mkdtemp

from lab.goals.conversations import Fault, Figures
from lab.goals.grammar import Grammar, Half
from lab.goals.pieces import PIECE, Piece, hold_all
from lab.goals.readers import Reader
from lab.goals.worlds import WORLDS


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m lab.goals", description=__doc__)
    parser.add_argument("--conversations", type=int, default=500, help="number per domain and NLU component")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--domain", nargs="+", choices=sorted(WORLDS), default=sorted(WORLDS))
    parser.add_argument("--reader", nargs="+", type=Reader, choices=list(Reader), default=list(Reader)[:4])
    parser.add_argument("--half", type=Half, choices=list(Half), default=Half.SEEN)
    parser.add_argument(
        "--show", type=int, default=1, help="number of failures to print per class and reason, shortest first"
    )
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--into", type=Path, help="output folder; default: a new one")
    given = parser.parse_args()
    pieces = [
        Piece(domain, reader, given.half, first, min(PIECE, given.seed + given.conversations - first))
        for domain in given.domain for reader in given.reader
        for first in range(given.seed, given.seed + given.conversations, PIECE)
    ]  # fmt: skip
    folder = given.into or Path(mkdtemp(prefix="parley-goals-"))
    folder.mkdir(parents=True, exist_ok=True)
    held = dict(hold_all(pieces, folder, given.processes))
    groups = {(one.domain, one.reader): Figures([]) for one in pieces}
    seconds = dict.fromkeys(groups, 0.0)
    for piece in pieces:
        groups[piece.domain, piece.reader].verdicts.extend(held[piece][0])
        seconds[piece.domain, piece.reader] += held[piece][1]
    if given.half is Half.SEEN:
        show_shortest(groups, given.show)
    show_reasons(groups)
    show_table(groups, seconds)
    print(f"\n{failures(groups, folder)} failures: {folder / 'failures.json'}")


def failures(groups: dict[tuple[str, Reader], Figures], folder: Path) -> int:
    found = [
        {"domain": domain, "reader": reader} | asdict(verdict)
        for (domain, reader), figures in groups.items() for verdict in figures.verdicts if verdict.faults
    ]  # fmt: skip
    (folder / "failures.json").write_text(json.dumps(found, indent=1), encoding="utf-8")
    return len(found)


def show_shortest(groups: dict[tuple[str, Reader], Figures], most: int) -> None:
    for (domain, reader), figures in groups.items():
        for fault in reversed(Fault):
            for verdict in figures.shortest(fault, most):
                reasons = "; ".join(why for _, why in verdict.faults)
                print(f"\n=== {domain}, {reader}: {fault}, seed {verdict.seed}: {reasons}")
                print("\n".join(verdict.transcript))


def show_reasons(groups: dict[tuple[str, Reader], Figures]) -> None:
    for (domain, reader), figures in groups.items():
        reasons = [(fault, reason, times) for fault in Fault for reason, times in figures.reasons(fault)[:6]]
        if reasons:
            print(f"\n{domain}, {reader}:")
        for fault, reason, times in reasons:
            print(f"  {times:5} {fault}: {reason}")


def show_table(groups: dict[tuple[str, Reader], Figures], seconds: dict[tuple[str, Reader], float]) -> None:
    columns = ["domain", "reader", "conversations", "turns", "reached", *(f"{fault}" for fault in Fault),
               "asked", "misread", "CPU s"]  # fmt: skip
    print("\n| " + " | ".join(columns) + " |\n|" + " --- |" * len(columns))
    for (domain, reader), figures in groups.items():
        count = len(figures.verdicts)
        cells = [domain, str(reader), f"{count:,}", f"{sum(one.turns for one in figures.verdicts):,}",
                 f"{100 * figures.reached / count:.2f} %"]  # fmt: skip
        for fault in Fault:
            times = figures.count(fault)
            cells.append(f"{times} ({100 * times / count:.2f} %)" if times else "0")
        cells.append(str(sum(one.asked for one in figures.verdicts)))
        cells.append(str(sum(one.misread for one in figures.verdicts)))
        print("| " + " | ".join([*cells, f"{seconds[domain, reader]:.0f}"]) + " |")
    halves = {
        domain: [Grammar(domain, half).count() for half in (Half.SEEN, Half.HELD_OUT)] for domain, _ in groups
    }
    print(f"\nWordings, seen and held out: {halves}")


if __name__ == "__main__":
    main()
