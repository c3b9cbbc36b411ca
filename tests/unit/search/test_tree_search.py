"""PL-5: the tree search, by its parts and against the known optimum of generated problems."""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from benchmarks.search import PROBLEMS, compare
from orchestrator.search import Outcome, Task, search
from orchestrator.search.tree import Tree

Word = str


def word_task(target: str, calls: list[str], *, letters: str = "abc") -> Task[Word]:
    """Find a word letter by letter: its score is the share of the target that it begins with."""

    async def expand(word: Word, lessons: Sequence[str], width: int) -> list[Word]:
        calls.append(f"expand {word} {'/'.join(lessons)}")
        return [] if len(word) == len(target) else [word + letter for letter in letters]

    async def evaluate(word: Word) -> float:
        calls.append(f"evaluate {word}")
        right = next((i for i, (a, b) in enumerate(zip(word, target, strict=False)) if a != b), len(word))
        return right / len(target)

    async def reflect(word: Word, score: float) -> str:
        calls.append(f"reflect {word}")
        return f"{word} is {score:.2f}"

    return Task(root="", expand=expand, evaluate=evaluate, key=lambda word: word, reflect=reflect)


async def test_finds_the_best_and_stops_there() -> None:
    calls: list[str] = []
    outcome = await search(word_task("cab", calls), calls=200)
    assert outcome.best is not None
    assert (outcome.best.state, outcome.best.score) == ("cab", 1.0)
    assert outcome.budget.spent == len(calls) < 200
    assert calls[-1].startswith("evaluate ca")


async def test_every_function_call_counts_and_the_budget_is_kept() -> None:
    calls: list[str] = []
    outcome = await search(word_task("cabba", calls), calls=7)
    assert len(calls) == 7 == outcome.budget.spent
    assert outcome.best is not None
    assert outcome.best.state == "ca"


async def test_a_budget_too_small_for_a_candidate_chooses_none() -> None:
    outcome = await search(word_task("cab", []), calls=1)
    assert outcome.best is None


async def test_lessons_reach_what_is_expanded_below_them() -> None:
    calls: list[str] = []
    await search(word_task("cab", calls), calls=60)
    assert any(call.startswith("expand ca c is 0.33/ca is 0.67") for call in calls)


async def test_scores_and_visits_add_up_along_the_tree() -> None:
    outcome = await search(word_task("bcabc", []), calls=40)
    for node in outcome.tree.nodes[1:]:
        below = [other for other in outcome.tree.nodes if other.score is not None and node in other.path()]
        assert node.visits == len(below)
        assert abs(node.total - sum(other.score or 0.0 for other in below)) < 1e-9


async def test_candidates_proposed_twice_are_looked_at_once() -> None:
    calls: list[str] = []
    await search(word_task("ab", calls, letters="aab"), calls=100)
    evaluated = [call for call in calls if call.startswith("evaluate")]
    assert len(evaluated) == len(set(evaluated))


async def test_ends_when_nothing_is_left_to_look_at() -> None:
    calls: list[str] = []
    task = word_task("zz", calls, letters="ab")
    outcome = await search(task, calls=1000)
    assert all(node.closed for node in outcome.tree.nodes)
    assert len(outcome.tree.nodes) == 1 + 2 + 4
    assert outcome.best is not None
    assert outcome.best.score == 0.0


async def test_the_record_tells_the_tree_scores_visits_and_choice() -> None:
    outcome: Outcome[str] = await search(word_task("cab", []), calls=20)
    record = orjson.loads(orjson.dumps(outcome.record(lambda word: {"word": word})))
    assert record["calls"] == outcome.budget.spent
    assert record["nodes"][0]["parent"] is None
    assert record["nodes"][0]["visits"] == len(record["nodes"]) - 1
    assert outcome.best is not None
    chosen = record["nodes"][record["chosen"]]
    assert chosen["state"] == {"word": outcome.best.state}
    assert chosen["score"] == outcome.best.score


def test_what_was_never_visited_is_selected_before_what_scored_well() -> None:
    tree = Tree("root")
    tree.root.expanded = True
    good, fresh = tree.add(tree.root, "good"), tree.add(tree.root, "fresh")
    tree.propagate(good, 0.9)
    assert tree.select(0.5) is fresh


def test_exploration_leads_away_from_a_node_that_was_visited_often() -> None:
    tree = Tree("root")
    tree.root.expanded = True
    good, worse = tree.add(tree.root, "good"), tree.add(tree.root, "worse")
    tree.propagate(good, 0.6)
    tree.propagate(worse, 0.5)
    for _ in range(30):
        tree.propagate(good, 0.6)
    assert tree.select(0.0) is good
    assert tree.select(0.5) is worse


async def test_finds_the_optimum_more_often_than_sampling_as_many_candidates() -> None:
    tallies = await compare(calls=60, problems=PROBLEMS)
    print(*(f"{name}: {tally}" for name, tally in tallies.items()), sep="\n")
    assert tallies["tree search"].problems >= 200
    assert tallies["tree search"].found >= tallies["sampling"].found
    assert tallies["tree search"].share >= tallies["sampling"].share
