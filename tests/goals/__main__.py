"""Hold many conversations and print what became of them: `python -m tests.goals --conversations 1000`."""

from __future__ import annotations

import argparse
import asyncio
import time

from tests.goals.conversations import Fault, Figures, converse_all
from tests.goals.grammar import Grammar, Half
from tests.goals.readers import Reader
from tests.goals.worlds import WORLDS, open_world


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.goals", description=__doc__)
    parser.add_argument("--conversations", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--reader", choices=[one.value for one in Reader], default="system1")
    parser.add_argument("--domain", choices=sorted(WORLDS), default="travel")
    parser.add_argument("--half", choices=[one.value for one in Half], default="seen")
    parser.add_argument("--show", type=int, default=1, help="shortest conversations of each class and reason")
    given = parser.parse_args()
    grammar = Grammar(given.domain, Half(given.half))
    world, loaded, system1 = open_world(given.domain, grammar)
    began = time.process_time()
    seeds = range(given.seed, given.seed + given.conversations)
    figures = asyncio.run(converse_all(world, loaded, system1, Reader(given.reader), seeds))
    show(figures, f"{given.domain}, {given.reader}, {given.half} half of the wordings ({grammar.count():,})",
         time.process_time() - began, given.show if given.half == "seen" else 0)  # fmt: skip


def show(figures: Figures, title: str, seconds: float, most: int) -> None:
    count = len(figures.verdicts)
    turns = sum(verdict.turns for verdict in figures.verdicts)
    for fault in reversed(Fault):
        for verdict in figures.shortest(fault, most):
            print(f"\n=== {fault}, seed {verdict.seed}: {'; '.join(why for _, why in verdict.faults)}")
            print("\n".join(verdict.transcript))
    print(f"\n{title}: {count} conversations, {turns} turns, {seconds:.0f} s of CPU")
    print(f"  reached       {figures.reached:6} {100 * figures.reached / count:6.2f} %")
    asked = sum(verdict.asked for verdict in figures.verdicts)
    misread = sum(verdict.misread for verdict in figures.verdicts)
    print(f"  a model was asked for {asked} turns; System 1 was sure of {misread} others, and wrong")
    for fault in Fault:
        print(f"  {fault:13} {figures.count(fault):6} {100 * figures.count(fault) / count:6.2f} %")
        for reason, times in figures.reasons(fault)[:6]:
            print(f"      {times:5} {reason}")


main()
