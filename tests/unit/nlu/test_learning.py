"""System 1 learns the same from the same, and says more than it was told (NL-2)."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from orchestrator.adapters.domains.folder import load_domain
from orchestrator.dialogue.flow import make_flow_class
from orchestrator.dialogue.specification import Family, FlowSpec
from orchestrator.nlu.classifier import probabilities
from orchestrator.nlu.linear import Examples, fit
from orchestrator.nlu.readers.system1 import System1
from orchestrator.types import Dact
from tests.unit.nlu.flights import AIRPORTS, ANSWERS, FLOWS, nothing_open, system1, understand

# Wordings that no example holds.
UNSEEN = [
    ("can you get me on a plane to Porto", "book_flight"),
    ("I'd love to fly from Lisbon to Oslo next week", "book_flight"),
    ("please book two seats to Madrid", "book_flight"),
    ("reserve me a flight for tomorrow to Oslo", "book_flight"),
    ("list all flights to Porto", "search_flights"),
    ("what flights are there from Madrid to Oslo", "search_flights"),
    ("look for flights on friday to Lisbon", "search_flights"),
    ("show flights leaving Oslo tomorrow", "search_flights"),
    ("can you check reservation AB12CD", "check_booking"),
    ("how is my booking doing, look it up", "check_booking"),
    ("please cancel the flight I booked", "cancel_booking"),
    ("I need my reservation AB12CD cancelled", "cancel_booking"),
]


def test_training_twice_gives_the_same_weights() -> None:
    again = System1.train(FLOWS, {"airport": AIRPORTS}, ANSWERS)
    first, second = system1().classifier.model, again.classifier.model
    assert first.labels == second.labels
    assert first.rows.keys() == second.rows.keys()
    assert all(np.array_equal(first.rows[name], second.rows[name]) for name in first.rows)
    assert first.sharpness == second.sharpness


def test_wordings_that_were_not_taught() -> None:
    right = [text for text, dact in UNSEEN if (flows := understand(text).flows) and flows[0].dact == dact]
    assert len(right) >= 10, {text for text, _ in UNSEEN} - set(right)


def test_values_do_not_decide() -> None:
    """The same sentence with other values has the same scores."""
    one = understand("find flights from Oslo to Madrid").flows
    two = understand("find flights from Porto to Lisbon").flows
    assert one == two


def test_probabilities_sum_to_one() -> None:
    model = system1().classifier.model
    assert abs(sum(probabilities(model, np.array([3.0, 1.0, -900.0]))) - 1) < 1e-9


def test_a_model_of_one_label_or_none_can_be_asked() -> None:
    assert fit(Examples([{"a": 1.0}], ["only"]), 1.0).labels == ("only",)
    assert fit(Examples([], []), 1.0).labels == ("",)


def test_a_domain_without_examples_still_knows_the_kinds() -> None:
    bare = System1.train([], {})
    assert bare.think("hello", nothing_open()).understanding.kind.value == "chitchat"


def test_internal_flows_are_never_predicted() -> None:
    """AG-7: not even in its own words."""
    words = ("tidy the memory", "tidy up the memory now", "put the memory in order")
    spec = FlowSpec(Dact("tidy_memory"), "0f1", "Internal", Family.INTERNAL, examples=words)
    domain = load_domain(Path(__file__).parents[2] / "domains" / "depot").domain
    learnt = System1.for_domain(replace(domain, flows={**domain.flows, spec.dact: make_flow_class(spec)}))

    flows = {label for label in learnt.classifier.model.labels if label.startswith("flow:")}
    assert flows == {f"flow:{dact}" for dact in domain.flows}
