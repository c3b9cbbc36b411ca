"""Requests and answers to open questions, with usable values and words that must be quoted (IR-6).

Each line: the message, values that may be used, and a word that must be quoted unless it is used; `-` if
nothing may be quoted. Written without knowledge of the lexicon.
"""

from __future__ import annotations

from typing import Final

Line = tuple[str, dict[str, str], str]

_REQUESTS: Final = """
book a flight from oslo to rome by way of frankfurt | origin=OSL destination=FCO | frankfurt
show me flights from oslo to rome via munich | origin=OSL destination=FCO | munich
flights from oslo to rome with a stop in vienna | origin=OSL destination=FCO | vienna
fly from oslo to rome passing through zurich | origin=OSL destination=FCO | zurich
all flights from oslo to rome after 6 pm | origin=OSL destination=FCO | after 6 pm
flights from oslo to rome before ten o'clock | origin=OSL destination=FCO | ten
i want to be in rome from oslo by 9 in the evening | | 9
book a flight from oslo to rome leaving around half past seven | origin=OSL destination=FCO | half past seven
flights from oslo to rome on united | origin=OSL destination=FCO | united
on lufthansa give me the flights from oslo to rome | origin=OSL destination=FCO | lufthansa
book a klm flight from oslo to rome | origin=OSL destination=FCO | klm
what does norwegian charge from oslo to rome | | norwegian
round trip fares from oslo to rome | | round
one way flights from oslo to rome | origin=OSL destination=FCO | one way
nonstop flights from oslo to rome | origin=OSL destination=FCO | nonstop
direct flights from oslo to rome | origin=OSL destination=FCO | direct
flights from oslo to rome with at most one stop | origin=OSL destination=FCO | stop
book a refundable flight from oslo to rome | origin=OSL destination=FCO | refundable
book a flexible ticket from oslo to rome | origin=OSL destination=FCO | flexible
book a flight from oslo to rome with a vegetarian meal | origin=OSL destination=FCO | vegetarian
book a flight from oslo to rome with my dog | origin=OSL destination=FCO | dog
book a flight from oslo to rome with a wheelchair | origin=OSL destination=FCO | wheelchair
book a flight from oslo to rome for my grandmother | origin=OSL destination=FCO | grandmother
book a flight from oslo to rome with an infant | origin=OSL destination=FCO | infant
i need a flight from oslo to rome for a student | origin=OSL destination=FCO | student
book a flight from oslo to rome and pay with miles | origin=OSL destination=FCO | miles
book a flight from oslo to rome with my voucher | origin=OSL destination=FCO | voucher
book a flight from oslo to rome if it is sunny there | origin=OSL destination=FCO | sunny
book a flight from oslo to rome unless it rains | origin=OSL destination=FCO | rains
book a flight from oslo to rome on a boeing | origin=OSL destination=FCO | boeing
flights from oslo to rome with wifi | origin=OSL destination=FCO | wifi
flights from oslo to rome with legroom | origin=OSL destination=FCO | legroom
a quiet flight from oslo to rome please | origin=OSL destination=FCO | quiet
book a flight from oslo to rome in a row by the exit | origin=OSL destination=FCO | exit
book a flight from oslo to rome without luggage | origin=OSL destination=FCO | luggage
flights from oslo to rome under 300 dollars | origin=OSL destination=FCO | dollars
flights from oslo to rome that land at ciampino | origin=OSL destination=FCO | ciampino
flights from oslo to rome excluding ryanair | origin=OSL destination=FCO | ryanair
book a flight from oslo to rome on behalf of my company | origin=OSL destination=FCO | company
book a flight from oslo to rome connecting to sicily | origin=OSL | connecting
"""
_CLEAN: Final = """
book a flight from oslo to rome | origin=OSL destination=FCO | -
could you please book me a flight from oslo to rome on 3 december | origin=OSL destination=FCO | -
hi, i would like to fly from oslo to rome | origin=OSL destination=FCO | -
hello, i need a flight from oslo to rome on friday for two people | origin=OSL destination=FCO passengers=2 | -
my wife and i want to fly from oslo to rome | origin=OSL destination=FCO passengers=2 | -
show me the cheapest flights from oslo to rome | origin=OSL destination=FCO | -
are there any flights from oslo to rome tomorrow morning | origin=OSL destination=FCO time_of_day=morning | -
i want to go from oslo to rome in business class | origin=OSL destination=FCO cabin=business | -
what flights do you have from oslo to rome next week on tuesday | origin=OSL destination=FCO | tuesday
book a train from oslo to rome | | train
serch flights form oslo to rome on 3 december | | serch flights form oslo
i need a taxi | | taxi
any flights from oslo to rome between 3 and 5 december | | between 3 and 5 december
can you find me something from oslo to rome | origin=OSL destination=FCO | -
we are three and want to fly from oslo to rome | origin=OSL destination=FCO passengers=3 | -
i am looking for a flight from oslo to rome in december | origin=OSL destination=FCO | december
when can i fly from oslo to rome | origin=OSL destination=FCO | -
how much is a flight from oslo to rome on friday | origin=OSL destination=FCO | -
what does it cost to fly from oslo to rome tomorrow | origin=OSL destination=FCO | -
"""
_ANSWERS: Final = """
rome by way of frankfurt | destination=FCO | frankfurt
rome, via munich | destination=FCO | munich
to rome after 6 pm | destination=FCO | after 6 pm
rome on lufthansa | destination=FCO | lufthansa
rome, round trip | destination=FCO | round
rome please | destination=FCO | -
to rome | destination=FCO | -
i'd like to go to rome | destination=FCO | -
rome i think | destination=FCO | -
rome for two people | destination=FCO passengers=2 | -
rome, but only nonstop | destination=FCO | nonstop
rome or maybe milan | |
to rome with my dog | destination=FCO | dog
rome to see my sister | destination=FCO | -
rome, hand luggage only | destination=FCO | luggage
let's say rome | destination=FCO | -
to rome in business | destination=FCO cabin=business | -
rome on friday | destination=FCO | -
rome through vienna | destination=FCO | vienna
anything near rome | | near
"""


def _read(lines: str) -> list[Line]:
    found: list[Line] = []
    for line in lines.strip().splitlines():
        words, values, word = (part.strip() for part in line.split("|"))
        found.append((words, dict(value.split("=") for value in values.split()), word))
    return found


REQUESTS = _read(_REQUESTS + _CLEAN.strip())
ANSWERS = _read(_ANSWERS)
