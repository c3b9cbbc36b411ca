"""Corrections while a flight is offered: Oslo to Rome on Thursday 3 December for two people in economy.

Each line: the message, values that may be used, and words that must be quoted if they are not used. Written
without knowledge of the lexicon.
"""

from __future__ import annotations

from typing import Final

_LINES: Final = """
actually only me, my wife stays home | passengers=1 | wife
my husband can't make it after all | passengers=1 | husband
my brother is joining us | passengers=3 | brother
we decided to leave the kids with grandma | | grandma
just one seat please, my colleague is ill | passengers=1 | ill
there will be three of us | passengers=3 |
four of us actually | passengers=4 |
make that three people | passengers=3 |
for 5 people please | passengers=5 |
no, two adults and an infant | | infant
my mother needs a wheelchair | |
one of us is a student | | student
my son turns two that week | | son
we need to sit together | | sit
make it after 6 pm | | after 6 pm
anything after 5 in the afternoon | | after 5
before noon would suit me better | time_of_day=morning |
not before ten o'clock | | ten
we have to land by 8 pm | | 8 pm
I can only leave at 7:45 | | 7:45
around half past three | | half past three
in the evening please | time_of_day=evening |
rather in the morning | time_of_day=morning |
no overnight layovers | | layovers
arriving no later than 11 | | 11
late afternoon if possible | time_of_day=evening | afternoon
on United please | | united
with Lufthansa if you can | | lufthansa
we only fly with Emirates | | emirates
not with Norwegian, they lost my suitcase | | suitcase
my company has a deal with KLM | | klm
I collect miles with British Airways | | miles
by way of Frankfurt | | frankfurt
via Munich | | munich
with a stop in Vienna | | vienna
but through Zurich | | zurich
stopping over in Copenhagen for a night | | copenhagen
direct flights only | | direct
no stopovers | | stopovers
nonstop | | nonstop
make it saturday | date=2026-12-05 |
can we go on friday instead | date=2026-12-04 |
could it be the 10th of December | date=2026-12-10 |
a day later please | | later
move the flight two days later | | later
move the trip to one day later | | later
two days earlier | | earlier
the week after | | week
let's do monday | date=2026-12-07 |
sunday suits us better | date=2026-12-06 |
before Friday | | friday
any day but Thursday | | thursday
the following wednesday | date=2026-12-09 | following
not on a Thursday | | thursday
the 4th, my meeting was moved | date=2026-12-04 | meeting
sometime in January | | january
after Christmas | | christmas
to Milan, not Rome | destination=MXP |
no, from Bergen | origin=BGO |
change the destination to Athens | destination=ATH |
we leave from Stavanger | origin=SVG |
from Torp rather than Gardermoen | origin=TRF |
Ciampino, please | destination=CIA | ciampino
somewhere warmer | | warmer
near Rome is enough | | near
to Naples, my sister lives there | destination=NAP | sister
I meant Barcelona | destination=BCN |
in business class | cabin=business |
premium economy for both of us | cabin=premium |
business for me, economy for my boss | | boss
first class if it is cheap | cabin=business | cheap
upgrade us with points | | points
anything but economy | | economy
not in economy | | economy
a window seat | | window
with two suitcases | | suitcases
I want a vegetarian meal | | vegetarian
extra legroom | | legroom
we bring skis | | skis
and travel insurance | | insurance
add a rental car | | rental
refundable only | |
with free cancellation | | free
pay with my voucher | | voucher
use my company card | | card
invoice it to my employer | | invoice
send the ticket to my assistant | | assistant
round trip | | round trip
and back on the 8th | | 8th
return a week later | | return
one way only | | way
with the return on Sunday | | return
under 200 euros | | 200
not more than 150 each | | 150
if it drops below 100 | | 100
only if my visa arrives | | visa
split it over two cards | | cards
my name is spelled Andersson | | andersson
it is for my father, not for me | | father
book under the name Kim Berg | | kim
hold it until tomorrow | | until
wait for my wife to agree | | wife
not that early | |
we are two more people | | two more
it has to be a Boeing | | boeing
before my wedding | | before my wedding
with a layover in Doha | | doha
my girlfriend is not coming, book for one | passengers=1 | girlfriend
"""


def _parse(line: str) -> tuple[str, dict[str, tuple[str, ...]], str]:
    message, values, quoted = (part.strip() for part in line.split("|"))
    taken: dict[str, tuple[str, ...]] = {}
    for pair in filter(None, values.split(",")):
        name, _, value = pair.partition("=")
        taken[name] = (*taken.get(name, ()), value)
    return message, taken, quoted


CORRECTIONS: Final = [_parse(line) for line in _LINES.strip().splitlines()]
