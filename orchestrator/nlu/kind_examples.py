"""Universal examples of the kinds of message, shipped with the core; `{*}` stands for any value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from orchestrator.nlu.examples import Example, kind_label

CORRECTION = """
no, I meant {*}|I meant {*}|no I said {*}|sorry, {*}|actually {*}|actually, make it {*}|make that {*} instead
wait, {*} instead|not {*} but {*}|not {*}, {*}|no, to {*} instead|no, from {*}|I want to change it to {*}
change that to {*}|change it to {*} please|correction, {*}|it should be {*}|that should be {*} not {*}
that's wrong, it's {*}|that is not right, I want {*}|oops, I meant {*}|let's do {*} instead|rather {*}
I made a mistake, it's {*}|could you change it to {*}|can we make it {*}|I changed my mind, {*}|switch it to {*}
no, {*}|nope, {*}|no, on {*}|no, at {*}|{*} instead|on second thought {*}|I'd prefer {*} instead|sorry I meant to {*}
"""
CONFIRMATION = """
yes|yes please|yep|yeah|yup|sure|ok|okay|correct|that's right|right|exactly|go ahead|please do|do it|sounds good
that works|perfect|confirm|confirmed|yes that's correct|yes, go ahead|looks good|great|fine|that's fine|absolutely
of course|definitely|yes, that is right|sure thing|I agree|book it|yes do that|please go ahead|y|affirmative
that sounds great|that sounds good to me|yes it is|yes I do|yes I would|good, do that|alright|I confirm
yes, please proceed|everything is correct|that will work|okay, that works for me
"""
DENIAL = """
no|nope|nah|no thanks|no thank you|not really|no, that's wrong|that's not right|don't do that|I don't think so
incorrect|wrong|no, don't|not that one|no way|n|negative|please don't|no it isn't|no that is not correct|not quite
neither|none of them|no I don't|that is wrong|it's not correct|not now
"""
CANCELLATION = """
cancel|cancel that|cancel it|never mind|nevermind|forget it|forget about it|stop|stop this|abort|quit this
I don't want to do this anymore|I changed my mind, forget it|drop it|leave it|scrap that|let's not do this
please cancel this|I no longer want this|let's forget the whole thing|never mind that|start over|cancel this request
don't bother|no need anymore|I want to stop
"""
RESUMPTION = """
go back to the booking|let's go back|back to what we were doing|continue where we left off|resume|let's continue
continue with that|back to the first thing|return to the previous task|where were we|pick up where we left off
okay back to it|let's get back to it|can we return to the search|carry on with the other one
continue the earlier request
go back to the previous one|let's finish the other one first|resume the booking|let's resume
back to my request|now back to the other thing|let's carry on with what I asked before
"""
HELP = """
help|help me|what can you do|what can I ask you|how does this work|how do I use this|I need help|I'm lost
what are my options here|show me what you can do|can you help me|what do you do|I don't know what to do
which things can you do for me
"""
CLARIFICATION = """
why do you need that|why do you ask|why do you need to know|what do you mean|what does that mean
I don't understand the question|what do you mean by that|why is that needed|can you explain that|what is that for
why do you want to know my {*}|I don't understand|what are you asking me|could you rephrase that|huh|pardon
say that again
"""
STATUS = """
what do you still need|what is missing|how far are we|what's the status|where are we|what have you got so far
what did I tell you so far|what are we doing|what's next|is it done yet|are you done|how much is left
what information do you have|what else do you need|what do you have so far|are we done|what is still open
"""
QUESTION = """
what is the weather like|how big is it|do you know where that is|is it far|which ones do you have
what does it cost usually
do you have a list|is there a fee|how long does it take|what are the rules|can I bring my dog|who are you exactly
"""
CHITCHAT = """
hi|hello|hey|hey there|good morning|good evening|good afternoon|hi there|how are you|thanks|thank you|thanks a lot
thank you so much|thank you very much|bye|goodbye|see you|that's all|that is all for now|have a nice day
nice to meet you
what's up|you are great|lol|haha|who are you|are you a robot|tell me a joke|good night|cheers|I'm bored
you're welcome|great job|that's all I needed, thanks|no, that's all|no that is all thank you|nothing else thanks
"""
SLOT_VALUE = """
{*}|{*} please|on {*}|at {*}|it's {*}|in {*}|to {*}|from {*}|the {*}|{*} would be good|let's say {*}|make it {*}
{*} I think|I'd like {*}|I want {*}|for {*}|{*} and {*}|I prefer {*}|{*} is fine|maybe {*}|the one on {*}|{*}, {*}
"""

LATER = {
    "correction": "rather in {*}|rather on {*}|rather to {*}|I would rather have {*}|rather {*} please|then rather {*}",
    "help": "I don't know|I don't know it|no idea|I have no idea",
    "status": "how far is the plan|which steps are still to come|how is the plan going|what is left of the plan",
}

_BY_KIND = {
    "correction": CORRECTION,
    "confirmation": CONFIRMATION,
    "denial": DENIAL,
    "cancellation": CANCELLATION,
    "resumption": RESUMPTION,
    "help": HELP,
    "clarification": CLARIFICATION,
    "status": STATUS,
    "question": QUESTION,
    "chitchat": CHITCHAT,
    "slot_value": SLOT_VALUE,
}


def kind_texts() -> Iterator[tuple[str, str]]:
    """(kind, text) of every shipped example."""
    for kind, block in (*_BY_KIND.items(), *LATER.items()):
        for line in block.strip().splitlines():
            for text in line.split("|"):
                yield kind, text.strip()


def kind_examples(values: Sequence[str]) -> Iterator[Example]:
    """The shipped examples with `{*}` replaced by typical values of the domain, in turn."""
    usable = values or ("something",)
    turn = 0
    for kind, text in kind_texts():
        for _variant in range(2 if "{*}" in text else 1):
            filled = text
            while "{*}" in filled:
                filled = filled.replace("{*}", usable[turn % len(usable)], 1)
                turn += 1
            yield Example(filled, kind_label(kind))
