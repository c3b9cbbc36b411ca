"""Policies of the flows that change something."""

from __future__ import annotations

from parley import BasePolicy


class BorrowThing(BasePolicy):
    dact = "borrow_thing"
