"""PL-5: the parts of tree search, and its results against the known optimum of generated problems."""

from __future__ import annotations

from collections.abc import Sequence

import orjson
import pytest
import yaml

from orchestrator.adapters.domains.folder import DEFAULTS
from orchestrator.plans.tree_search import Judgement, Search, Task, search
from tests.unit.plans.decompositions import PROBLEMS, compare

Word = str


def word_task(target: str, calls: list[str], *, letters: str = "abc") -> Task[Word]:
    """Return the task of finding a word letter by letter. A score is the share of the word that matches."""

    async def expand(word: Word, lessons: Sequence[Sequence[str]], width: int) -> list[Word]:
        calls.append(f"expand {word} {'/'.join(said for faults in lessons for said in faults)}")
        return [] if len(word) == len(target) else [word + letter for letter in letters]

    async def judge(words: Sequence[Word]) -> list[Judgement]:
        calls.append(f"judge {' '.join(words)}")
        return [rate(word) for word in words]

    def rate(word: Word) -> Judgement:
        right = next((i for i, (a, b) in enumerate(zip(word, target, strict=False)) if a != b), len(word))
        return Judgement(right / len(target), (f"{word} is {right / len(target):.2f}",))

    return Task(root="", expand=expand, judge=judge, key=lambda word: word)


async def test_finds_the_best_and_stops_there() -> None:
    calls: list[str] = []
    outcome = await search(word_task("cab", calls), calls=200)
    assert outcome.best is not None
    assert (outcome.best.state, outcome.best.score) == ("cab", 1.0)
    assert outcome.spent == len(calls) < 200
    assert calls[-1] == "judge caa cab cac"


async def test_every_function_call_counts_and_the_budget_is_kept() -> None:
    calls: list[str] = []
    outcome = await search(word_task("cabba", calls), calls=5)
    assert len(calls) == 4 == outcome.spent  # a fifth call would expand without a judgment
    assert outcome.best is not None
    assert outcome.best.state == "ca"


async def test_all_candidates_of_an_expansion_are_judged_by_one_call() -> None:
    """PL-5: default: three candidates at the root, and four below."""
    calls: list[str] = []
    await search(word_task("fab", calls, letters="abcdef"), calls=4)
    assert calls[:2] == ["expand  ", "judge a b c"]
    assert [len(call.split()) - 1 for call in calls if call.startswith("judge")] == [3, 4]


async def test_a_budget_too_small_for_a_candidate_chooses_none() -> None:
    outcome = await search(word_task("cab", []), calls=1)
    assert outcome.best is None


async def test_lessons_reach_what_is_expanded_below_them() -> None:
    calls: list[str] = []
    await search(word_task("cab", calls), calls=60)
    assert "expand ca ca is 0.67/c is 0.33" in calls


async def test_scores_and_visits_add_up_along_the_tree() -> None:
    outcome = await search(word_task("bcabc", []), calls=40)
    for node in outcome.nodes[1:]:
        below = [other for other in outcome.nodes if other.score is not None and node in other.path()]
        assert node.visits == len(below)
        assert abs(node.total - sum(other.score or 0.0 for other in below)) < 1e-9


async def test_candidates_proposed_twice_are_looked_at_once() -> None:
    calls: list[str] = []
    await search(word_task("ab", calls, letters="aab"), calls=100)
    evaluated = [word for call in calls if call.startswith("judge") for word in call.split()[1:]]
    assert len(evaluated) == len(set(evaluated))


async def test_ends_when_nothing_is_left_to_look_at() -> None:
    calls: list[str] = []
    task = word_task("zz", calls, letters="ab")
    outcome = await search(task, calls=1000)
    assert all(node.closed for node in outcome.nodes)
    assert len(outcome.nodes) == 1 + 2 + 4
    assert outcome.best is not None
    assert outcome.best.score == 0.0


async def test_the_record_tells_the_tree_scores_visits_and_choice() -> None:
    outcome: Search[str] = await search(word_task("cab", []), calls=20)
    record = orjson.loads(orjson.dumps(outcome.record(lambda word: {"word": word})))
    assert record["calls"] == outcome.spent
    assert record["nodes"][0]["parent"] is None
    assert record["nodes"][0]["visits"] == len(record["nodes"]) - 1
    assert outcome.best is not None
    chosen = record["nodes"][record["chosen"]]
    assert chosen["state"] == {"word": outcome.best.state}
    assert chosen["score"] == outcome.best.score


def test_exploration_leads_away_from_a_node_that_was_visited_often() -> None:
    tree = Search(word_task("cab", []), limit=10)
    root = tree.nodes[0]
    root.expanded = True
    good, worse = tree.add(root, "good", 0.6), tree.add(root, "worse", 0.5)
    good.expanded = True
    for word in "xyz" * 10:
        tree.add(good, word, 0.6)
    assert tree.select(0.0) in good.children
    assert tree.select(0.5) is worse


@pytest.mark.parametrize("noise", [0.0, 0.05])
async def test_beats_sampling_and_greedy_at_the_default_budget(noise: float) -> None:
    """PL-5: on 200 generated problems with known optimum, with a perfect and an imperfect judge."""
    calls = yaml.safe_load(DEFAULTS.read_text("utf-8"))["plans"]["tree_model_calls"]
    tallies = await compare(calls=calls, problems=PROBLEMS, noise=noise)
    print(*(f"{name}: {tally}" for name, tally in tallies.items()), sep="\n")
    tree = tallies["tree search"]
    assert tree.problems >= 200
    assert all(
        tree.found > 1.5 * other.found and tree.share > other.share
        for name, other in tallies.items()
        if name != "tree search"
    )
