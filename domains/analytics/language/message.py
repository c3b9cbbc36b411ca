"""Cut a message into tokens and write it as a line on which forms can be matched.

In the line, names and numbers stand as a letter with the token's number: T tables, C columns, V values,
N numbers, Q quoted words, W a whole condition. IT stands for what was spoken of before; all else is a word.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from domains.analytics.catalogue import EXTREMES
from domains.analytics.language.names import LONGEST, Meaning, Names
from domains.analytics.statements.parts import words

_TOKEN = re.compile(
    r"""["“][^"”]*["”]|(?<!\w)'[^']*'(?!\w)|\d{4}-\d{2}(?:-\d{2})?|\d{1,2}:\d{2}|\d[\d,]*(?:\.\d+)?"""
    r"""|[A-Za-z_]\w*(?:['’]\w+)?|[<>!=]=|<>|[^\s\w]"""
)
FILLERS = words(
    "the a an please kindly me our your can could would will you i i'd want like need let let's hey ok okay "
    "well some all any give we we'd us pls plz plase pleas plese pleae pleaes pleese plaese pelase pleasee pleaze "
    "thank thanks"
)
"""Words that carry nothing; forms never see them."""
_IT = words("it this that them they these")
_WHOLE = {"what's": "what is", "what’s": "what is", "whats": "what is"}
_SILENT = frozenset(".?!;:'’“”\"")
_OPENERS = frozenset({"where", "whose", "with", "having", "have", "has", "had"})
_ENDS = words("sorted ordered sort order grouped group by per as top limit please stay remain should must")
"""Words that end a condition; inside of one they have to stand in quotes."""
_WHICH = re.compile(r"\W*(?:and |so )?which\b", re.IGNORECASE)
_EXTREME = re.compile(rf"\b(?:{'|'.join(EXTREMES)})\b", re.IGNORECASE)
_AMOUNT_FIRST = re.compile(
    r"\b(?:have|has|had|having|with) "
    r"(?P<operator>over|above|under|below|(?:more|less|fewer|greater) than|at (?:least|most)) "
    r"(?P<amount>\d[\d,.]*\d|\d) (?P<column>[a-z_]+(?: [a-z_]+)??)(?=$|[.?!,]| (?:in|of|from|and|by)\b)",
    re.IGNORECASE,
)
"""A condition that names its column last: "with over 15 mpg"."""
_BEFORE_TABLE = frozenset({"in", "of", "from", "for"})
_AFTER_COLUMN = words(
    "is are was isn't aren't not over above more greater after under below less fewer before at between contains "
    "containing starts starting ends ending equals since until > < >= <= = == != <>"
)


@dataclass(frozen=True, slots=True)
class Token:
    """A word, number, quotation or name of a message. `start`, `end`: its place in the text."""

    text: str
    start: int
    end: int
    meaning: Meaning = field(default_factory=Meaning)

    @property
    def word(self) -> str:
        return self.text.lower()

    @property
    def plain(self) -> str:
        """The words without quotes."""
        return self.text[1:-1] if self.text[0] in "\"“'" and len(self.text) > 2 else self.text

    @property
    def number(self) -> float | None:
        return float(self.text.replace(",", "")) if re.fullmatch(r"\d[\d,]*(?:\.\d+)?", self.text) else None

    @property
    def kind(self) -> str:
        """The letter that stands for it in the line; empty for a plain word."""
        if self.meaning.tables:
            return "T"
        if self.meaning.columns:
            return "C"
        if self.meaning.value:
            return "V"
        if self.number is not None:
            return "N"
        return "Q" if self.plain != self.text else ""


@dataclass(frozen=True, slots=True)
class Message:
    """`line`: the message as forms see it. `condition`: the one that W stands for, beginning with “where”."""

    text: str
    tokens: tuple[Token, ...]
    line: str
    condition: str | None

    def token(self, mark: str) -> Token:
        """Find the token that a mark such as C3 stands for."""
        return self.tokens[int(mark[1:])]

    def said(self, marks: str) -> str:
        """Give the words that a part of the line stands for."""
        parts = (self.token(one).plain if re.fullmatch(r"[TCVNQ]\d+", one) else one for one in marks.split())
        return " ".join(parts)

    def as_said(self, word: str) -> str:
        """Give a word of the line as it was written."""
        return next((token.text for token in self.tokens if token.word == word), word)

    def with_table(self, word: str) -> Message:
        """Take a word of the line for the name of a table."""
        place = next(place for place, token in enumerate(self.tokens) if token.word == word)
        table = replace(self.tokens[place], meaning=Meaning(tables=(word,)))
        line = re.sub(rf"(?<!\S){word}(?!\S)", f"T{place}", self.line, count=1)
        return replace(self, tokens=(*self.tokens[:place], table, *self.tokens[place + 1 :]), line=line)

    @property
    def names(self) -> str:
        """The kinds of names and numbers that it has."""
        return "".join(sorted(set(re.findall(r"(?<!\S)([TCVNQW])\d*(?!\S)", self.line))))


def read_message(text: str, names: Names) -> Message:
    """Write a message as a line."""
    if _WHICH.match(text):
        text = _EXTREME.sub(lambda one: EXTREMES[one[0].lower()], text)
    text = _AMOUNT_FIRST.sub(r"where \g<column> is \g<operator> \g<amount>", text)
    tokens = _join(text, [Token(one[0], one.start(), one.end()) for one in _TOKEN.finditer(text)], names)
    first, last = _find_condition(tokens)
    condition = None
    if first is not None:
        body = (
            text[tokens[first].end : tokens[last - 1].end].strip(" ,").rstrip(" .!?")
            if last > first + 1
            else ""
        )
        condition = f"where {body}"
    line: list[str] = []
    for place, token in enumerate(tokens):
        if first is not None and first <= place < last:
            line += ["W"] if place == first else []
        elif token.kind and not _is_naming(tokens, place):
            line.append(f"{token.kind}{place}")
        elif token.word not in FILLERS and token.word not in _SILENT:
            line.append("IT" if token.word in _IT else _WHOLE.get(token.word, token.word))
    if line[:1] == ["to"] and tokens[0].word in FILLERS:
        del line[0]  # "I would like to rename …"
    return Message(text, tuple(tokens), " ".join(line), condition)


def _is_naming(tokens: list[Token], place: int) -> bool:
    """Tell “the name of mpg” and “give mpg the name power” from a column that is called “name”."""
    if tokens[place].word != "name":
        return False
    before, after = tokens[max(place - 2, 0) : place], tokens[place + 1 : place + 4]
    of_column = bool(after) and after[0].word in {"of", "for"} and "C" in {one.kind for one in after}
    return of_column or [one.kind or one.word for one in before] in (["C", "the"], ["T", "the"])


def _join(text: str, found: list[Token], names: Names) -> list[Token]:
    """Put the words of names together, the longest first."""
    tokens: list[Token] = []
    plain = [one.plain.lower().replace("_", " ") for one in found]
    first = 0
    while first < len(found):
        for last in range(min(first + LONGEST, len(found)), first, -1):
            said = " ".join(plain[first:last])
            meaning = names.phrases.get(said)
            if meaning is None and said.endswith(("'s", "’s")):
                meaning = names.phrases.get(said[:-2])
            if meaning is not None:
                start, end = found[first].start, found[last - 1].end
                tokens.append(Token(text[start:end], start, end, meaning))
                first = last
                break
        else:
            tokens.append(found[first])
            first += 1
    return tokens


def _find_condition(tokens: list[Token]) -> tuple[int | None, int]:
    """Find the places where a condition begins and ends."""
    for place, token in enumerate(tokens[:-1]):
        if token.word in _OPENERS and (token.word in {"where", "whose"} or _is_clause(tokens[place + 1 :])):
            return place, _end_of_condition(tokens, place)
    return None, 0


def _is_clause(tokens: list[Token]) -> bool:
    """Tell “with mpg over 30” from other uses of “with”: a column and what is asked of it follow."""
    rest = tokens[1:] if tokens[0].word == "the" else tokens
    return len(rest) > 1 and rest[0].kind == "C" and rest[1].word in _AFTER_COLUMN


def _end_of_condition(tokens: list[Token], first: int) -> int:
    for place in range(first + 1, len(tokens)):
        following = [one.kind for one in tokens[place + 1 : place + 3] if one.word not in {"the", "table"}]
        if tokens[place].word in _ENDS or (tokens[place].word in _BEFORE_TABLE and following[:1] == ["T"]):
            return place - 1 if tokens[place - 1].word in {"and", ","} else place
    return len(tokens)
