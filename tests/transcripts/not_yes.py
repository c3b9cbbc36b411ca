"""Messages after which nothing may be done, with, near or without a yes (PX-18)."""

from __future__ import annotations

from itertools import product

from tests.cases import parts

# Generated from parts, so that no message was written with the list in mind.
_BEGINNINGS = parts("""yes | ok | sure | okay | good | perfect | alright | great""")
_QUESTIONS = parts("""how much is it | when does it land | which airline is that | is it refundable
    | what is the price | how long is it? | who flies it | can I bring a dog | does it have wifi
    | are there earlier ones?""")
_CHANGES = parts("""but on Monday | but in business | from Bergen | for two | make it Saturday
    | only if it is cheap | and add a bag | except the return | unless it rains | without luggage
    | with a window seat""")
_DOUBTS = parts("""maybe | I guess | let me think | wait | not yet | later | never mind | I mean no
    | or rather not""")
_PRAISED = parts("""it | that | this | the flight | Madrid | the weather | she | the last trip""")
_PRAISES = parts("""great | perfect | good | ok | nice | fine | lovely | right | wonderful | all right""")
_REPORTED = parts("""I said yes to my wife | he told me yes | my boss says ok | yes is what she said
    | they booked it | I would have said yes | you should book it for others | somebody agreed
    | who said yes""")
_BY_STRANGERS = parts("""stop, do not go through with it | hold off on that | I haven't decided yet
    | let me sleep on it | nope, not that one | not without my wife | I'd never pay that
    | only if it is cheaper on Monday | sounds alright I guess | who would say yes to that?
    | that would have been fine last year | my boss will say yes | cool, is breakfast included
    | right, and how do I pay | hm, I wonder | thanks, what is the baggage allowance
    | how long does a refund take | keep it, I changed my mind | cancel the other one instead
    | yesterday I would have said yes | please leave everything as it is | can I get it back later
    | what is in it | perhaps tomorrow | good grief no | between 5 and 7 december
    | it is fine the way it is | do they serve food on board | which terminal is it | Cork would be lovely
    | make it for minus three | my phone number is 555 0199 | the third
    | what would it cost for four of us | after that, add a bag | also book a hotel after that
    | don't send the e-mail | why this flight | book just the way out | tell me that again please
    | one more bag please | Vienna would be nice | Lisbon sounds nice | ok then, goodbye
    | uh, er, yes and no | let's not | she is asking if it is ok""")
_OTHER = parts("""no | nope | don't | don't book it | cancel it | thanks | please | hm | ? | yes? | ok? | 👎 | ok 👎
    | yes, to Bergen | book another one | book | Friday | I | shall I | yes, 11:00 | yes no | yeah right | it
    | yes and no | y e s | not ok | ok ok ok but | nein | ja, aber morgen | sí, pero no | quizás | vielleicht
    | please cancel everything | that's enough, stop | book a flight, please | drop that, please | yes 🤔 | 👍?
    | 👍 but in business | that would be lovely, thank you | great, thanks""")
NOT_YES = [
    *_BY_STRANGERS,
    *(f"{yes}, {rest}" for yes, rest in product(_BEGINNINGS, (*_QUESTIONS, *_CHANGES, *_DOUBTS))),
    *(f"{it} {was} {praise}" for it, was, praise in product(_PRAISED, ("was", "is", "sounds"), _PRAISES)),
    *_PRAISES[:3],
    *_PRAISES[4:9],
    *_REPORTED,
    *_OTHER,
]
