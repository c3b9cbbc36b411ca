"""Messages after which nothing may be done: with a yes in them, near one, or without any (PX-18)."""

from __future__ import annotations

from itertools import product

# Put together from parts, so that none of them was written with the list at hand.
_BEGINNINGS = ("yes", "ok", "sure", "okay", "good", "perfect", "alright", "great")
_QUESTIONS = (
    *(
        "how much is it",
        "when does it land",
        "which airline is that",
        "is it refundable",
        "what is the price",
    ),
    *("how long is it?", "who flies it", "can I bring a dog", "does it have wifi", "are there earlier ones?"),
)
_CHANGES = (
    *(
        "but on Monday",
        "but in business",
        "from Bergen",
        "for two",
        "make it Saturday",
        "only if it is cheap",
    ),
    *("and add a bag", "except the return", "unless it rains", "without luggage", "with a window seat"),
)
_DOUBTS = (
    "maybe",
    "I guess",
    "let me think",
    "wait",
    "not yet",
    "later",
    "never mind",
    "I mean no",
    "or rather not",
)
_PRAISED = ("it", "that", "this", "the flight", "Madrid", "the weather", "she", "the last trip")
_PRAISES = ("great", "perfect", "good", "ok", "nice", "fine", "lovely", "right", "wonderful", "all right")
_REPORTED = (
    *("I said yes to my wife", "he told me yes", "my boss says ok", "yes is what she said", "they booked it"),
    *("I would have said yes", "you should book it for others", "somebody agreed", "who said yes"),
)
NOT_YES = [
    *(f"{yes}, {rest}" for yes, rest in product(_BEGINNINGS, (*_QUESTIONS, *_CHANGES, *_DOUBTS))),
    *(
        f"{thing} {verb} {praise}"
        for thing, verb, praise in product(_PRAISED, ("was", "is", "sounds"), _PRAISES)
    ),
    *_PRAISES[:3],
    *_PRAISES[4:9],
    *_REPORTED,
    *(
        "no",
        "nope",
        "don't",
        "don't book it",
        "cancel it",
        "thanks",
        "please",
        "hm",
        "?",
        "yes?",
        "ok?",
        "👎",
        "ok 👎",
    ),
    *(
        "yes, to Bergen",
        "book another one",
        "book",
        "Friday",
        "I",
        "shall I",
        "yes, 11:00",
        "yes no",
        "yeah right",
        "it",
    ),
    *(
        "yes and no",
        "y e s",
        "not ok",
        "ok ok ok but",
        "nein",
        "ja, aber morgen",
        "sí, pero no",
        "quizás",
        "vielleicht",
    ),
]
