"""Tells a plain yes from words that hedge, ask or add something (PX-18).

Only a plain yes may do something that lasts, whoever has understood it so: System 1, a model, or several.
"""

from __future__ import annotations

from orchestrator.nlu.text import tokenize, word_set

_YES = word_set(
    "yes yeah yep yup ya y aye sure ok okay k correct right exactly absolutely definitely affirmative "
    "certainly perfect great fine good excellent wonderful lovely alright agree agreed confirm confirmed "
    "course please indeed totally works work sounds looks proceed"
)
_ACTING = word_set("do go proceed confirm book take make buy pay order send run start")
_AROUND = word_set(
    "'s sorry a an and the i we you me us it its it's that that's this these those them all one is are am be "
    "was i'd i'll i'm we'd we'll let's lets would like love want will to for of on in at from by with do "
    "does go ahead just so then now thing thank thanks much very really please my our your everything "
    "looks sounds works work good great as asked shown agree can right away way oh ah well there here"
)
_NO_PLAIN_YES = word_set(
    "not no nope never don't dont doesn't isn't won't can't but though however maybe perhaps possibly if "
    "whether unless until except instead or later wait hold stop think thinking guess hmm shall should "
    "could might may what when where which why how who also too plus add another other else change "
    "different first before after only almost rather hope unsure"
)
_ASKING = word_set(
    "is isn't are aren't am was were does did can could will would shall should has had may might must"
)
_PERSONS = word_set("i you we they")
"""What begins a question: "is that really right", "do you book it then"."""


def is_plain_yes(text: str, question: str) -> bool:
    """Say whether a text does nothing but agree to what was asked.

    Args:
        text: what the user said.
        question: the words in which it was asked; to repeat them adds nothing.
    """
    words = tokenize(text.casefold().replace("’", "'")).words
    said = [word for word in words if any(character.isalnum() for character in word)]
    if "?" in text or not said or not _NO_PLAIN_YES.isdisjoint(said):
        return False
    if said[0] in _ASKING or (said[0] in {"do", "have"} and said[1:2] and said[1] in _PERSONS):
        return False
    asked = set(tokenize(question.casefold().replace("’", "'")).words)
    agrees = any(word in _YES for word in said) or said[0] in _ACTING
    return agrees and all(
        word in _YES or word in _ACTING or word in _AROUND or word in asked for word in said
    )
