"""A gallery: a long story, a table with many pages, and facts with every payload of `payloads.txt`."""

from __future__ import annotations

from pathlib import Path

from parley import JsonObject, Service

PAYLOADS = Path(__file__).with_name("payloads.txt").read_text(encoding="utf-8").splitlines()
ARTICLE = " ".join(
    f"In room {number} hangs a picture of the sea, and beneath it stands a chair that nobody may use."
    for number in range(1, 17)
)


class Gallery(Service):
    async def read_article(self) -> JsonObject:
        return {"story": ARTICLE}

    async def list_exhibits(self) -> JsonObject:
        return {"exhibits": [{"number": at, "name": text, text: "x"} for at, text in enumerate(PAYLOADS, 1)]}

    async def read_card(self) -> JsonObject:
        return {"words": " ".join(PAYLOADS[:3]), **{f"fact {text}": text for text in PAYLOADS}}

    async def register_guest(self, *, guest: str, room: str) -> JsonObject:
        return {"guest_id": f"{room}-1", "guest": guest}
