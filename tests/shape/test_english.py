"""Upper limits on bad wording habits. Limits may only decrease."""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from tests.cases import for_each
from tests.shape.sources import files

CODE: Final = (
    "benchmarks",
    "client",
    "deploy",
    "domains",
    "gateway",
    "internal_flows",
    "lab",
    "orchestrator",
    "parley",
    "workers",
)
TEXTS: Final = {".py", ".md", ".yaml", ".yml", ".j2", ".sql", ".js", ".html"}

HABITS: Final[dict[str, str]] = {
    "a docstring opens with a clause": (
        r'"""(?:What|Who|Whose|Whoever|Whatever|Whether|How|Why|When|Where|That|Which)\b'
    ),
    "a docstring opens with a fragment": r'"""(?:Of|By|Per|As|None)\b',
    "a docstring opens with a vague verb": r'"""(?:Say|Tell|Give|Take|Name|Hold|Make|Have|Let|Put)\b',
    "a docstring is in the third person": (
        r'"""(?:Says|Tells|Gives|Takes|Holds|Makes|Keeps|Raises|Returns|Reads|Writes|Runs|Sends|'
        r"Finds|Knows)\b"
    ),
    "a sentence opens with a clause": (
        r"(?:[a-z)`][.:]\s+|^)(?:What|Who|Whoever|Whatever|Whichever)\s[^.?!|\n]*[.;,|\n]"
    ),
    "a noun is negated": r"(?<!there )(?<!There )\b(?:is|are|was|were|be|that)\s(?:no|none)\b(?!\s(?:longer|more))",
    "a role is a pronoun": r"\b(?i:somebody|nobody|everybody|whoever)\b",
    "an owner is spelled out": r"\bof\s(?:its|their|his|one's|our)\sown\b|\bby\s(?:itself|themselves)\b",
    "a repetition": r"\b(?i:anew|once\smore|one\smore)\b",
    "a translated adverb": r"\b(?i:at\swork|for\sgood|also\swhere|so\smany|beside|besides)\b",
    "a default is hidden": r"[;,] else [a-zA-Z0-9_`]+[.;]|\bNone: [a-z]|; without (?:it|one),",
    "a private verb": (
        r"\b(?i:carr(?:y|ies|ied|ying)\sout|carried\sout|go(?:es)?\son|went\son|(?:take[sn]?|"
        r"taking|took)\sup|mend(?:s|ed|ing)?|hearken|judged?\sby)\b"
    ),
    "a confirmation is a yes": r"\b(?:a|the|no|his|their|its)\s(?:yes|no)\b(?=[ ,.;:)])(?!\s\w+\sone)",
    "British spelling": (
        r"\b(?i:\w*(?:organis|recognis|summaris|normalis|serialis|authoris|initialis|optimis|"
        r"categoris|naturalis|generalis|minimis|prioritis|synchronis|tokenis|behaviour|colour|"
        r"neighbour|favour|honour|labell)\w*|licence|grey|centre|misspelt|learnt|artefact)\b"
    ),
    "a house word": (
        r"(?i:\b(?:remarks?|interjections?|hand-over|take-over|set\saside|direct\smode|ways?\sout|"
        r"time-outs?|processor\stime|whole\sstate|identifiers?|housekeeping)\b)"
    ),
}
# Maximum numbers for code and documents.
LIMITS: Final[dict[str, tuple[int, int]]] = {
    "a docstring opens with a clause": (0, 0),
    "a docstring opens with a fragment": (0, 0),
    "a docstring opens with a vague verb": (0, 0),
    "a docstring is in the third person": (0, 0),
    "a sentence opens with a clause": (6, 0),
    "a noun is negated": (38, 6),
    "a role is a pronoun": (23, 0),
    "an owner is spelled out": (4, 0),
    "a repetition": (3, 0),
    "a translated adverb": (37, 0),
    "a default is hidden": (1, 0),
    "a private verb": (20, 0),
    "a confirmation is a yes": (2, 0),
    "British spelling": (37, 0),
    "a house word": (151, 8),
}


@cache
def texts_of(kind: str) -> str:
    """Return the text of all code, or of all documents."""
    paths = files(*CODE) if kind == "code" else (*files("docs"), *files())
    wanted = [
        path
        for path in dict.fromkeys(paths)
        if path.suffix in TEXTS
        and (kind == "code" or (path.suffix == ".md" and path.parts[-2] != "decisions"))
        and (kind == "code" or not any(f"/{folder}/" in path.as_posix() for folder in (*CODE, "tests")))
        and "phrases" not in path.parts  # sentences of simulated users
    ]
    return "\n".join(path.read_text(encoding="utf-8") for path in wanted)


def count(pattern: str, kind: str) -> int:
    return sum(1 for _ in re.finditer(pattern, texts_of(kind), re.MULTILINE))


@for_each("habit", HABITS)
def test_a_habit_of_wording_does_not_spread(habit: str) -> None:
    in_code, in_documents = LIMITS[habit]

    assert count(HABITS[habit], "code") <= in_code, f"{habit}: see CONTRIBUTING.md"
    assert count(HABITS[habit], "documents") <= in_documents, f"{habit}: see CONTRIBUTING.md"
