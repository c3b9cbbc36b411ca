"""Answer questions by quoting passages with their sources (CO-4)."""

import re

from orchestrator.memory.tokenizer import find_terms, split_sentences
from orchestrator.ports.memory.documents import Candidate, Passage
from orchestrator.types import JsonObject

ABOUT = 0.5
"""Minimum share of a question's search terms in a relevant passage."""
MOST_SENTENCES = 3
LONGEST_HEADING = 120
_ENDS_SENTENCE = (".", "!", "?", ":", ";", ",")
_BULLET = re.compile(r"^(?:[-*•]|\d+\.)\s+")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def split_heading(passage: Passage | Candidate) -> tuple[str, str]:
    first, _, rest = passage.text.partition("\n")
    is_heading = bool(rest.strip()) and len(first) <= LONGEST_HEADING and not first.endswith(_ENDS_SENTENCE)
    return (first, rest.strip()) if is_heading else ("", passage.text)


def quote(question: str, title: str, section: str, text: str) -> str:
    """Return a passage's most relevant sentences for a question, at most `MOST_SENTENCES`, in the passage's order."""
    asked = set(find_terms(question)) - set(find_terms(f"{title} {section}"))
    sentences = [_BULLET.sub("", sentence) for sentence in split_sentences(text)]
    scores = [len(asked & set(find_terms(sentence))) for sentence in sentences]
    if not any(scores):  # Only the heading is relevant.
        return " ".join(sentences[:MOST_SENTENCES])
    best = max(scores)
    kept = [sentence for sentence, score in zip(sentences, scores, strict=True) if score == best]
    return " ".join(kept[:MOST_SENTENCES])


def describe_passage(passage: Passage) -> JsonObject:
    """Return a passage's text, title, section and source. The source is the document ID and the position."""
    heading, body = split_heading(passage)
    title = passage.title or heading or "an untitled document"
    return {
        "source": f"{passage.document_id}:{passage.position}",
        "title": title,
        "section": "" if heading == title else heading,
        "text": body,
    }


def find_unfounded_numbers(answer: str, *grounds: str) -> list[str]:
    """Return the numbers in an answer that none of the source texts `grounds` contains."""
    known = {number for text in grounds for number in _NUMBER.findall(text)}
    return [number for number in _NUMBER.findall(answer) if number not in known]
