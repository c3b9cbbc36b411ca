"""Tree search against the optimum, on generated decomposition problems whose every score is known.

For each problem, exhaustive search finds the best decomposition. Tree search, sampling with the same number of
candidates from the same proposer, and greedy search then look for it.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from orchestrator.plans.tree_search import Judgement, Search, Task, search

STEPS = 6
GOALS = 4
PROBLEMS = 200
MOST_FAULTS = 3
"""Maximum number of faults that a judge names."""
Plan = tuple[int, ...]
"""Step numbers, in order and without duplicates."""
Judge = Callable[[Plan], float]


@dataclass(frozen=True)
class Problem:
    """A decomposition problem.

    Args:
        gives: goals that each step reaches.
        needs: steps that must come before a step, which otherwise reaches nothing.
        orders: pairs that are better in this order.
        costs: cost of each step.
    """

    gives: tuple[frozenset[int], ...]
    needs: tuple[frozenset[int], ...]
    orders: tuple[tuple[int, int], ...]
    costs: tuple[float, ...]

    def score(self, plan: Plan) -> float:
        """Return a score from 0 to 1. Reached goals count most, then the order, then low cost."""
        reached = frozenset[int]().union(*(self.gives[s] for s in self.working(plan)))
        kept = sum(a in plan and b in plan and plan.index(a) < plan.index(b) for a, b in self.orders)
        spent = sum(self.costs[step] for step in plan) / sum(self.costs)
        return 0.65 * len(reached) / GOALS + 0.25 * kept / len(self.orders) + 0.1 * (1 - spent)

    def working(self, plan: Plan) -> list[int]:
        """Return the steps whose needs are met."""
        done: set[int] = set()
        for step in plan:
            if self.needs[step] <= done:
                done.add(step)
        return [step for step in plan if step in done]

    def faults(self, plan: Plan) -> list[str]:
        """Return a plan's faults as a critic would describe them, worst kind first."""
        working = self.working(plan)
        lacking = (
            f"needs {step} {min(self.needs[step] - set(working), default=step)}"
            for step in plan
            if step not in working
        )
        unmet = (f"goal {goal}" for goal in range(GOALS) if all(goal not in self.gives[s] for s in plan))
        wrong = (
            f"order {a} {b}"
            for a, b in self.orders
            if a in plan and b in plan and plan.index(a) > plan.index(b)
        )
        return [*lacking, *unmet, *wrong]


def make_problem(chance: random.Random) -> Problem:
    """Return a problem with reachable goals and acyclic needs."""
    ranks = list(range(STEPS))
    chance.shuffle(ranks)
    gives = [set[int]() for _ in range(STEPS)]
    for goal in range(GOALS):
        for step in chance.sample(range(STEPS), chance.choice((1, 1, 2))):
            gives[step].add(goal)
    needs = [
        frozenset(other for other in range(STEPS) if ranks[other] < ranks[step] and chance.random() < 0.25)
        for step in range(STEPS)
    ]
    pairs = list(itertools.permutations(range(STEPS), 2))
    costs = tuple(chance.uniform(0.2, 1.0) for _ in range(STEPS))
    return Problem(tuple(map(frozenset, gives)), tuple(needs), tuple(chance.sample(pairs, 5)), costs)


def propose(chance: random.Random) -> Plan:
    """Return a random decomposition. Sampling and the tree's root share this proposer."""
    return tuple(chance.sample(range(STEPS), chance.randint(2, STEPS)))


def vary(plan: Plan, lesson: str, problem: Problem, chance: random.Random) -> Plan:
    """Return a similar decomposition that heeds the lesson, or has a random edit without one."""
    steps = list(plan)
    match lesson.split():
        case ["needs", step, needed]:
            rest = [other for other in steps if other != int(needed)]
            rest.insert(rest.index(int(step)) if int(step) in rest else 0, int(needed))
            return tuple(rest)
        case ["goal", goal]:
            able = [s for s in range(STEPS) if int(goal) in problem.gives[s] and s not in steps]
            if able:
                steps.insert(chance.randint(0, len(steps)), chance.choice(able))
            return tuple(steps)
        case ["order", first, second] if {int(first), int(second)} <= set(steps):
            i, j = steps.index(int(first)), steps.index(int(second))
            steps[i], steps[j] = steps[j], steps[i]
            return tuple(steps)
        case _:
            return _edit(steps, chance)


def _edit(steps: list[int], chance: random.Random) -> Plan:
    absent = [step for step in range(STEPS) if step not in steps]
    kind = chance.choice(("swap", "move", "drop", "add"))
    if kind == "add" and absent:
        steps.insert(chance.randint(0, len(steps)), chance.choice(absent))
    elif kind == "drop" and len(steps) > 1:
        steps.pop(chance.randrange(len(steps)))
    elif kind == "move":
        steps.insert(chance.randrange(len(steps)), steps.pop(chance.randrange(len(steps))))
    else:
        i, j = chance.randrange(len(steps)), chance.randrange(len(steps))
        steps[i], steps[j] = steps[j], steps[i]
    return tuple(steps)


async def search_tree(problem: Problem, chance: random.Random, calls: int, judge: Judge) -> Search[Plan]:
    async def expand(plan: Plan, lessons: Sequence[Sequence[str]], width: int) -> list[Plan]:
        if not plan:
            return [propose(chance) for _ in range(width)]
        own = lessons[0] if lessons else ()
        return [vary(plan, own[n] if n < len(own) else "", problem, chance) for n in range(width)]

    async def judge_all(plans: Sequence[Plan]) -> list[Judgement]:
        return [Judgement(judge(plan), tuple(problem.faults(plan)[:MOST_FAULTS])) for plan in plans]

    empty: Plan = ()
    task = Task(root=empty, expand=expand, judge=judge_all, key=lambda plan: plan)
    return await search(task, calls=calls)


def sample(chance: random.Random, candidates: int, judge: Judge) -> Plan:
    return max((propose(chance) for _ in range(candidates)), key=judge)


def choose_greedily(judge: Judge) -> Plan:
    """Append the most helpful step as long as one helps."""
    plan: Plan = ()
    best = 0.0
    while len(plan) < STEPS:
        longer = [(*plan, step) for step in range(STEPS) if step not in plan]
        next_plan = max(longer, key=judge)
        if judge(next_plan) <= best:
            break
        plan, best = next_plan, judge(next_plan)
    return plan


def make_judge(problem: Problem, seed: str, noise: float) -> Judge:
    """Return a deterministic judge of plans. `noise`: the deviation of its scores."""

    def judge(plan: Plan) -> float:
        return problem.score(plan) + random.Random(f"{seed} {plan}").gauss(0.0, noise)

    return judge if noise else problem.score


@dataclass
class Tally:
    """The frequency with which the optimum was found, and the mean share of the optimum that was reached."""

    found: int = 0
    share: float = 0.0
    problems: int = 0

    def count(self, score: float, optimum: float) -> None:
        self.problems += 1
        self.found += score >= optimum - 1e-9
        self.share += score / optimum

    def __str__(self) -> str:
        return f"optimum in {self.found / self.problems:6.1%}, {self.share / self.problems:6.1%} of it on average"


@cache
def find_optimum(problem: Problem) -> float:
    """Return the best possible score. Sets of steps that cannot beat the best score so far are skipped."""

    def most(steps: Plan) -> float:
        reached = len(frozenset[int]().union(*(problem.gives[step] for step in steps)))
        kept = sum(a in steps and b in steps for a, b in problem.orders)
        spent = sum(problem.costs[step] for step in steps) / sum(problem.costs)
        return 0.65 * reached / GOALS + 0.25 * kept / len(problem.orders) + 0.1 * (1 - spent)

    sets = [steps for size in range(1, STEPS + 1) for steps in itertools.combinations(range(STEPS), size)]
    best = 0.0
    for steps in sorted(sets, key=most, reverse=True):
        if most(steps) <= best:
            break
        best = max(best, *map(problem.score, itertools.permutations(steps)))
    return best


async def compare(
    calls: int, problems: int = PROBLEMS, seed: int = 11, noise: float = 0.0
) -> dict[str, Tally]:
    """Run all three searches on the same problems with the same judge."""
    tallies = {"tree search": Tally(), "sampling": Tally(), "greedy": Tally()}
    for number in range(problems):
        problem = make_problem(random.Random(f"{seed} problem {number}"))
        judge = make_judge(problem, f"{seed} judge {number}", noise)
        optimum = find_optimum(problem)
        outcome = await search_tree(problem, random.Random(f"{seed} tree {number}"), calls, judge)
        candidates = len(outcome.nodes) - 1
        assert outcome.best is not None
        tallies["tree search"].count(problem.score(outcome.best.state), optimum)
        drawn = sample(random.Random(f"{seed} sample {number}"), candidates, judge)
        tallies["sampling"].count(problem.score(drawn), optimum)
        tallies["greedy"].count(problem.score(choose_greedily(judge)), optimum)
    return tallies
