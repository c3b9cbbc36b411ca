"""Detect message parts that aren't requests: forbidden, excluded, past, reported or supposed (NL-8).

A cue begins a scope, which usually extends to the end of the clause.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import groupby

from orchestrator.nlu.text import PREPOSITIONS, tokenize, word_at, word_set


class Mood(StrEnum):
    """A reason why a part of a message is not a request."""

    FORBIDDEN = "forbidden"
    EXCLUDED = "excluded"
    """An exclusion, such as “anything but economy” or “not in the evening”."""
    PAST = "past"
    REPORTED = "reported"
    SUPPOSED = "supposed"


_SENTENCE_ENDS = word_set(". ! ? ;")
_BEGINNING = word_set("please so can could")
_ENDS = word_set(". ! ? ; but because then")
_AFTER_NOT = word_set("more less later earlier before after over under only just sure yet until bad much")
"""Words that turn a preceding “not” into a limit instead of an exclusion, as in “not more than 300”."""
_DEGREES = word_set("that so too very quite")
_NEGATED_VERBS = word_set(
    "don't dont doesn't doesnt didn't didnt never won't wont wouldn't wouldnt shouldn't shouldnt mustn't mustnt "
    "needn't neednt haven't havent hasn't hasnt"
)
_AUXILIARIES = word_set("do does did will would should must shall have has had need could may might")
_REMINDING = word_set("forget hesitate fail mind")
"""Verbs that turn a negation into a request, as in “don't forget to”."""
_NO = word_set("no nope nah")
_DENYING = _NO | word_set("not")
_AFTER_NO = word_set("thanks thank you way please , . !")
_ENDING = word_set("stop quit avoid cease refrain")
_SAYING = word_set(
    "says said say tells told tell asks asked ask wonders wondered thinks thought think claims claimed heard hears "
    "suggests suggested recommends recommended mentioned mentions writes wrote insists believes promised"
)
_BEING = word_set("is are was were 's keeps kept")
_KNOWING = (("wants", "to", "know"), ("want", "to", "know"), ("would", "like", "to", "know"))
_OTHERS = word_set("he she they somebody someone everybody everyone people nobody who")
_POSSESSIVES = word_set("my our his her their your the a an one")
_OWN_SAYING = word_set("told heard dreamed dreamt promised read thought said")
"""Verbs that report the user's own words or thoughts: “I told my wife …”. “I told you” repeats a request instead."""
FIRST_PERSON = word_set("i we i've we've i'd we'd")
_HAVING = word_set("have has had 've already just once recently yesterday finally actually also even")
_IRREGULAR = word_set("bought sent made took got did flew paid gave found went chose set put wrote")
_SUPPOSING = word_set("if whether suppose supposing imagine assuming unless")
_IN_CLAUSES = _ENDS | _SUPPOSING | FIRST_PERSON | word_set("and or not please you can could would should")
"""Tokens that join, limit or begin clauses, which names don't contain."""
_EXCLUDING = (
    ("except",), ("excluding",), ("without",), ("besides",), ("anything", "but"), ("everything", "but"), ("any", "but"),
    ("all", "but"), ("anywhere", "but"), ("other", "than"), ("instead", "of"), ("rather", "than"), ("apart", "from"),
    ("neither",), ("nor",),
)  # fmt: skip
_ALL = word_set("any every all anything everything anywhere anyone everyone")
_EXCLUSION_ENDS = _ENDS | word_set(", and just only please instead if")
_NO_NEED = (("no", "need"), ("no", "reason"), ("not", "necessary"), ("not", "going"), ("decided", "not"),
            ("decided", "against"), ("rather", "not"), ("better", "not"), ("prefer", "not"), ("not", "to"),
            ("by", "no", "means"), ("under", "no", "circumstances"),
            ("let", "'s", "not"), ("let", "us", "not"))  # fmt: skip

_NEGATIONS = _NEGATED_VERBS | _ENDING | word_set("not but") | {cue[0] for cue in (*_EXCLUDING, *_NO_NEED)}
EXCLUDING_WORDS = _NEGATIONS | {word.replace("'", "’") for word in _NEGATIONS}
"""Tokens for a fast check: every prohibition or exclusion contains at least one of them."""
_CUES = _NEGATIONS | _SUPPOSING | _OTHERS | _POSSESSIVES | FIRST_PERSON | _NO
"""Tokens for a fast check: every message with a scope contains at least one of them."""
_OPENERS = _CUES | _AUXILIARIES
"""Tokens that a scope can begin with."""


def find_moods(words: Sequence[str], verbs: Collection[str]) -> dict[int, Mood]:
    """Return the mood, by index, of each token that isn't part of a request.

    `verbs`: verbs of the domain's requests.
    """
    moods: dict[int, Mood] = {}
    plain = [word.replace("’", "'") for word in words]
    if _CUES.isdisjoint(plain):
        return moods
    for mood, first, last in _scopes(plain, verbs):
        for place in range(first, last):
            moods.setdefault(place, mood)
    return moods


def can_be_name(text: str) -> bool:
    """Return whether a text can be a name: it doesn't begin with a preposition, and has no word of clauses."""
    words = tokenize(text).words
    return PREPOSITIONS.isdisjoint(words[:1]) and _IN_CLAUSES.isdisjoint(words)


def find_spans(moods: Mapping[int, Mood], wanted: Collection[Mood]) -> Iterator[range]:
    """Yield the spans of consecutive tokens whose mood is in `wanted`."""
    places = [at for at in sorted(moods) if moods[at] in wanted]
    for _, run in groupby(enumerate(places), key=lambda one: one[1] - one[0]):
        inside = [at for _, at in run]
        yield range(inside[0], inside[-1] + 1)


def _scopes(words: Sequence[str], verbs: Collection[str]) -> Iterator[tuple[Mood, int, int]]:
    for place, word in enumerate(words):
        if word not in _OPENERS:
            continue
        if word in _DENYING and (begin := _find_denied(words, place)) is not None:
            yield Mood.FORBIDDEN, begin, place + 1
        elif (length := _forbids(words, place)) > 0:
            is_own = word_at(words, place - 1) in FIRST_PERSON  # “I won't need it, cancel it”
            yield Mood.FORBIDDEN, place, _end(words, place + length, () if is_own else verbs)
        elif _leaves_out(words, place):
            yield Mood.EXCLUDED, place, _end_of_exclusion(words, place + 1)
        elif (length := _starts(words, place, _EXCLUDING)) > 0 or _excludes(words, place):
            yield Mood.EXCLUDED, place, _end_of_exclusion(words, place + max(length, 1))
        elif _reports(words, place):
            yield Mood.REPORTED, place, _end_of_report(words, place, verbs)
        elif _is_past(words, place, verbs):
            yield Mood.PAST, place, _end(words, place + 1, ())
        elif word in _SUPPOSING or (word in FIRST_PERSON and _is_unreal(words, place, verbs)):
            yield Mood.SUPPOSED, place, _end(words, place + 1, ())


def _find_denied(words: Sequence[str], place: int) -> int | None:
    """Return the start of the clause or sentence that the word at `place` denies afterward, or None.

    A “not” can end its clause, as in German (“cancel my booking not”). A sentence that only says no denies the
    sentence before it (“forget everything? No!”).
    """
    before, behind = word_at(words, place - 1), words[place + 1 :]
    if words[place] in _NO and before in _SENTENCE_ENDS and _AFTER_NO.issuperset(behind):
        return _begin(words, place - 1, _SENTENCE_ENDS)
    is_last = not behind or behind[0] in _ENDS | {","}
    if words[place] == "not" and is_last and before.isalpha() and before not in {"why", "or", "if"}:
        return _begin(words, place, _ENDS | {","})
    return None


def _begin(words: Sequence[str], place: int, ends: Collection[str]) -> int:
    return next((at + 1 for at in range(place - 1, -1, -1) if words[at] in ends), 0)


def _forbids(words: Sequence[str], place: int) -> int:
    """Return the number of tokens in a prohibition that starts at `place`, such as “do not”, or 0."""
    word, following = words[place], words[place + 1 : place + 3]
    before = word_at(words, place - 1)
    if word in _NEGATED_VERBS:
        is_offer = before == "why" or (following[:1] == ["you"] and word != "never")
        return 0 if is_offer or _reminds(words, place + 1) else 1
    if word in _AUXILIARIES and following[:1] == ["not"]:
        return 0 if before == "why" or _reminds(words, place + 2) else 2
    if word in _ENDING and following and following[0].endswith("ing"):
        return 1
    if word in {"without", "instead"} and any(one.endswith("ing") for one in following):
        return 1
    return _starts(words, place, _NO_NEED)


def _reminds(words: Sequence[str], place: int) -> bool:
    """Return whether a negated verb reminds: “don't forget to …”, but not “don't forget everything”."""
    verb = word_at(words, place)
    return verb in _REMINDING and (verb == "mind" or word_at(words, place + 1) == "to")


def _excludes(words: Sequence[str], place: int) -> bool:
    if words[place] != "not" or (place and words[place - 1] in {"why", "or", "if"}):
        return False
    place += 1
    while place < len(words) and words[place] in _DEGREES:
        place += 1
    return place < len(words) and words[place] not in _AFTER_NOT | _ENDS | {","}


def _leaves_out(words: Sequence[str], place: int) -> bool:
    """Return whether a “but” excludes the words after it: “any day but Thursday”."""
    return words[place] == "but" and not _ALL.isdisjoint(words[max(0, place - 2) : place])


def _reports(words: Sequence[str], place: int) -> bool:
    """Return whether reported speech begins at `place`: “my colleague says”, “they want to know”, “I was told”."""
    for length in (1, 2, 3):
        subject, rest = words[place : place + length], words[place + length :]
        if not _is_other(subject):
            continue
        if rest[:1] and (rest[0] in _SAYING or _is_saying(rest)):
            return True
        if any(tuple(rest[: len(know)]) == know for know in _KNOWING):
            return True
    own = words[place] in FIRST_PERSON and words[place + 1 : place + 2]
    if not own:
        return False
    verb, following = words[place + 1], words[place + 2 : place + 3]
    if verb == "was" and following == ["told"]:
        return True
    return verb in _OWN_SAYING and following != ["you"]


def _is_saying(words: Sequence[str]) -> bool:
    """Return whether the words begin with a phrase such as “is asking” or “was wondering”."""
    if words[0] not in _BEING or not (words[1:2] and words[1].endswith("ing")):
        return False
    stem = words[1].removesuffix("ing")
    return not _SAYING.isdisjoint({stem, f"{stem}e", f"{stem}s", f"{stem}es"})


def _is_other(subject: Sequence[str]) -> bool:
    if len(subject) == 1:
        return subject[0] in _OTHERS
    return subject[0] in _POSSESSIVES and all(word.isalpha() for word in subject)


def _is_past(words: Sequence[str], place: int, verbs: Collection[str]) -> bool:
    """Return whether a subject and the past form of an irregular verb or one of `verbs` begin at `place`.

    An auxiliary before the subject indicates a question: “what have I changed”.
    """
    if place > 0 and words[place - 1] in _AUXILIARIES:
        return False
    if not (words[place] in FIRST_PERSON or _is_other(words[place : place + 1])):
        if not _is_other(words[place : place + 2]):
            return False
        place += 1
    at = place + 1
    while at < len(words) and words[at] in _HAVING:
        at += 1
    return at < len(words) and _is_past_form(words[at], verbs)


def _is_unreal(words: Sequence[str], place: int, verbs: Collection[str]) -> bool:
    """Return whether an unreal past begins with the pronoun at `place`: “I would have booked”."""
    modal, have, past = (*words[place + 1 : place + 4], "", "", "")[:3]
    return modal in _AUXILIARIES and have == "have" and _is_past_form(past, verbs)


def _is_past_form(word: str, verbs: Collection[str]) -> bool:
    if word in _IRREGULAR:
        return True
    if not word.endswith("ed"):
        return False
    stems = {word[:-1], word[:-2], word[:-3], f"{word[:-3]}y"}
    return not stems.isdisjoint(verbs)


def _starts(words: Sequence[str], place: int, cues: Collection[tuple[str, ...]]) -> int:
    return max((len(cue) for cue in cues if tuple(words[place : place + len(cue)]) == cue), default=0)


def _end(words: Sequence[str], place: int, verbs: Collection[str]) -> int:
    """Return the index of a clause's end.

    If `verbs` is not empty, a comma ends a clause only after one of them (“don't, ever, cancel it”).
    """
    has_verb = not verbs
    for at in range(place, len(words)):
        if words[at] in _ENDS or (words[at] == "," and has_verb):
            return at
        has_verb = has_verb or words[at] in verbs
    return len(words)


def _end_of_exclusion(words: Sequence[str], place: int) -> int:
    return next((at for at in range(place, len(words)) if words[at] in _EXCLUSION_ENDS), len(words))


def _end_of_report(words: Sequence[str], place: int, verbs: Collection[str]) -> int:
    """Return the index of a report's end: the end of its sentence, or a comma before a request."""
    for at in range(place, len(words)):
        begins = word_at(words, at + 1)
        if words[at] in _SENTENCE_ENDS or (words[at] == "," and (begins in verbs or begins in _BEGINNING)):
            return at
    return len(words)
