"""Tells a plain yes from words that hedge, ask or add something (PX-18).

Only a plain yes may do something that lasts, whoever has understood it so: System 1, a model, or several.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from orchestrator.nlu.text import read_signs, tokenize, word_set

_YES = word_set(
    "yes yeah yep yup ya y aye sure ok okay k correct right exactly absolutely definitely affirmative "
    "certainly perfect great fine good excellent wonderful lovely alright agree agreed confirm confirmed "
    "course please indeed totally works work sounds looks proceed perfectly ideal nice suits permission granted thats "
    "si ja jo oui"
)
_PRAISE = word_set(
    "right exactly perfect great fine good excellent wonderful lovely alright please works work sounds looks perfectly "
    "ideal nice thats course"
)
"""What agrees only as something that is said of the offer: "great, thanks" may end the talk as well."""
_OF_OFFER = word_set("be is sounds works looks suits works 's")
_FRIENDLY = "😀😃😄😁😊🙂😍🥰😉🤗🎉✨❤💪👏🙌🥳✈🏖🏝☀⭐"
_ACTING = word_set("do go proceed confirm approve book take make buy pay order send run start")
_DEEDS = word_set("send run start")
"""What agrees only where the question names the deed: "send it to me" is no yes to "Shall I book it?"."""
_ADMIRING = word_set("lovely nice wonderful excellent")
"""What is said of a thing as well as of an offer: "Rome is lovely", "nice, who else flies there"."""
_NEW = word_set("a an")
"""What one has with a thing that was not spoken of before."""
_AROUND = word_set(
    "'s sorry a an and the i we you me us it its it's that that's this these those them all one is are am be "
    "was i'd i'll i'm we'd we'll let's lets would like love want will to for of on in at from by with do "
    "does go ahead let just so then now thing thank thanks much very really please my our your everything "
    "looks sounds works work good great as asked shown agree can right away way oh ah well there here "
    "reservation booking kind lot"
)
_NO_PLAIN_YES = word_set(
    "not no nope never don't dont doesn't isn't won't can't but though however maybe perhaps possibly if "
    "whether unless until except instead or later wait hold stop think thinking guess hmm shall should "
    "could might may what when where which why how who also too plus add another other else change "
    "different first before after only almost rather hope unsure show tell explain"
)
_ASKING = word_set(
    "is isn't are aren't am was were does did can could will would shall should has had may might must"
)
"""What begins a question, as do "do" and "have" before a person: "is that really right", "do you book it then"."""
_PERSONS = word_set("i you we they")
_UNDOING = word_set("cancel stop abort quit forget leave drop delete remove undo skip end enough")
"""What takes back rather than agrees, unless the very question is about it: "Shall I cancel it?"."""
_HEDGING = word_set("think thinking wonder whether maybe perhaps unsure moment minute second wait hold")
_GIVING_UP = _UNDOING | word_set("not no don't never nevermind mind scrap changed against anymore off")
_TAKING_BACK = word_set(
    "cancel stop abort quit forget scrap delete undo not no don't never nevermind anymore"
)
_SWEEPING = word_set("everything all anything whatever")
"""What is taken back beside what was asked about: "drop everything" is no yes to "Shall I drop it?"."""
_REQUESTS = word_set(
    "please tell give send show check provide get grab what where when who how which can could do"
)
"""How something is asked for without a question mark."""
_WHILE_ASKING = word_set(
    "if whether think thinking shall could may what when where which why how who also after hope unsure "
    "show tell explain"
)
"""Words that a question may have without taking anything back of the yes before it."""
_CHANGES = (_NO_PLAIN_YES - _WHILE_ASKING) | word_set("cancel actually make switch next")
"""Words after a yes that take something of it back, or want more than was offered."""
_ELSE = re.compile(
    r"\d|^(?:if|whether)\b|\b(?:what|how) about\b|\b(?:can|could|may|shall) (?:we|it|that)\b|\bis there\b|\bare there\b"
    r"|\bfor (?:the )?(?:two|three|four|five|six|seven|eight|nine|ten|both)\b"
    r"|\b(?:next|other|another|fast|cheap|later|earlier)(?:er|est)?\b"
    r"|\b(?:book|buy|order|reserve|choose)\b|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b"
    r"|\b(?:today|tonight|tomorrow|weekend|week|month)\b"
)
"""What a question asks for that wants something else than was offered: "How about tomorrow?"."""
_FIXED = re.compile(
    r"\b(?:(?:yes|yeah|sure|ok|okay|well),? why not(?=\W*$)"
    r"|(?:that|it)(?:'s| is|s) (?:better|about it|what i want(?:ed)?)|you(?:'| a)re right"
    r"|fits? (?:in|into|with)? ?my schedule"
    r"|i(?:'| wi)ll (?:change|switch|move) (?:it )?to (?:that|this|it)(?= *(?:[.!;]|$)))\b"
)
"""Phrases that agree as a whole, whatever their words mean elsewhere."""
_MAKING = re.compile(r"\bmake (?:it|that|them)\b(?!\s+so\b)")
"""How another value is named, though it may be the one that was offered: "sorry, make it tomorrow"."""
_DECLINING = re.compile(
    r"\b(?:i(?:'| a)?m|we(?:'| a)?re) (?:all |just )?(?:good|fine|great|ok|okay|alright|set)\b(?! (?:with|to)\b)"
    r"|^\W*yeah,? right\W*$|\bgo away\b|\bgood for (?:you|him|her|them)\b"
    r"|\bcorrect (?:it|that|this|them|me)\b"
    r"|^\W*(?:(?:ok|okay|well|good|great|fine|perfect|alright|thanks|thank you)\W+)+"
    r"that(?:'s|s| is|'ll be| will be) (?:all|everything)\b"
)
"""Idioms that turn down, or ask for another thing, with the words of a yes: "thanks, I'm good", "correct that"."""
_FORBIDDEN = re.compile(
    r"(?:please |sorry,? )*(?:don't|do not|never) "
    r"(?:book|buy|do|order|take|add|cancel|change|make|drop|delete|send) (?:it|that|this|them|anything)\b"
    r"(?: (?:please|now|yet))?[.! ]*"
)
_SENTENCE = re.compile(r"[^.!?]*[.!?]+|[^.!?]+")
_ASIDE = re.compile(
    r"(?:,| and\b)(?:\W*(?:and|oh|please|also))*\W+"
    r"(?:(?:what|where|when(?! (?:i|we|he|she|they|my|our|the)\b)|who|which|how)(?:'s|'re)?\b"
    r"|(?:can|could|would) you (?:please )?(?:tell|give|send)\b|do you know\b|tell me\b"
    r"|(?:get|give|send|show) me (?:the|its|all) (?:\w+ )?(?:details|costs?|price|total|address|(?:phone )?number)\b)"
)
"""How a question begins that asks for more about what is agreed to, and not whether to agree."""


def puts_off(words: Iterable[str]) -> bool:
    """Say whether words put off rather than give up: "let me think about whether I can afford this"."""
    said = frozenset(words)
    return not _HEDGING.isdisjoint(said) and _GIVING_UP.isdisjoint(said)


def gives_up(text: str) -> bool:
    """Say whether a text has a word that takes back what is wanted, or refuses it."""
    return not _TAKING_BACK.isdisjoint(_words_of(text.casefold().replace("’", "'")))


def is_forbidden(text: str) -> bool:
    """Say whether a text says no to what was offered by its deed: "don't book it"."""
    return _FORBIDDEN.fullmatch(text.casefold().replace("’", "'")) is not None


def is_plain_yes(text: str, question: str) -> bool:
    """Say whether a text agrees to what was asked, and neither hedges nor changes anything of it.

    A yes that is a sentence of its own may be followed by a question; within one sentence, only what asks for more
    about the thing leaves the yes plain. To repeat the words of the question adds nothing.
    """
    said = _FIXED.sub("yes", read_signs(text).casefold().replace("’", "'"))
    if any(unicodedata.category(sign) == "So" and sign not in _FRIENDLY for sign in said):
        return False
    first, *rest = [part.strip() for part in _SENTENCE.findall(said) if part.strip(" .!?")] or [""]
    last = question.replace("\n", ". ").rstrip(" .").rpartition(". ")[2]
    told = _words_of(" ".join(part for part in (first, *rest) if "?" not in part))
    if _MAKING.search(said) or _DECLINING.search(said):
        return False
    undoing = _UNDOING.intersection(told)
    if undoing and not (undoing | _SWEEPING.intersection(told)).issubset(_words_of(last.casefold())):
        return False
    if any(not _agrees(part, question) and _changes(part) for part in rest):
        return False
    if _agrees(first, question):
        return True
    aside = _ASIDE.search(first)
    if aside is None or _ADMIRING.issuperset(_YES.intersection(_words_of(first[: aside.start()]))):
        return False
    return _agrees(first[: aside.start()], question) and not _wants_else(first[aside.start() :])


def agrees_politely(text: str) -> bool:
    """Say whether a text agrees and names nothing to do, with thanks or without: "that would be lovely, thank you".

    Whoever hears a request or a no in it is wrong. Praise alone may end the talk as well: "great, thanks".
    """
    words = _words_of(read_signs(text).casefold().replace("’", "'"))
    is_idle = all(word in _YES or word in _AROUND for word in words)
    return is_idle and is_plain_yes(text, "") and "all" not in words and not _is_mere_praise(words)


def only_praises(text: str) -> bool:
    """Say whether all that agrees in a text is praise, and not of the offer: "great, thanks" may end the talk as well.

    It is a yes where nobody hears anything else in it.
    """
    words = _words_of(read_signs(text).casefold().replace("’", "'"))
    return not _YES.isdisjoint(words) and _is_mere_praise(words)


def _is_mere_praise(words: list[str]) -> bool:
    """Say whether nothing but praise agrees, if anything, and it is not said of the offer."""
    return _PRAISE.issuperset(_YES.intersection(words)) and _OF_OFFER.isdisjoint(words)


def _agrees(text: str, question: str) -> bool:
    """Say whether every word of a sentence agrees, repeats the question or means nothing."""
    words = _words_of(text)
    if "?" in text or not words or not _NO_PLAIN_YES.isdisjoint(words):
        return False
    if words[0] in _ASKING or (words[0] in {"do", "have"} and words[1:2] and words[1] in _PERSONS):
        return False
    telling = next((word for word in words if word in _ACTING or word not in _AROUND), "")
    yeses = _YES.intersection(words)
    says_so = bool(yeses)
    besides = {word for word in words if word not in _YES and word not in _ACTING and word not in _AROUND}
    if besides and not says_so and not _NEW.isdisjoint(words):
        return False  # "make a note", said when one is offered, may ask for another
    if besides and says_so and yeses <= _ADMIRING:
        return False
    if not says_so and telling in _DEEDS:
        besides.add(telling)
    agrees = says_so or telling in _ACTING
    # A question may be long, and seldom has to be cut into words.
    return agrees and (not besides or besides.issubset(tokenize(question.casefold().replace("’", "'")).words))


def _changes(text: str) -> bool:
    """Say whether words after a yes take something back or add something; a plain statement may add, too."""
    words = _words_of(text)
    begins = next((word for word in words if word not in {"and", "oh", "so"}), "")
    is_request = "?" in text or begins in _REQUESTS
    is_idle = begins not in _ASKING and all(word in _YES or word in _AROUND for word in words)
    return not (is_request or is_idle) or _wants_else(text)


def _wants_else(text: str) -> bool:
    """Say whether a question wants something else, or something besides."""
    return not _CHANGES.isdisjoint(_words_of(text)) or _ELSE.search(text) is not None


def _words_of(text: str) -> list[str]:
    return [word for word in tokenize(text).words if any(character.isalnum() for character in word)]
