"""How the flows that change something are carried out."""

from __future__ import annotations

from parley import BasePolicy


class BorrowThing(BasePolicy):
    dact = "borrow_thing"
