"""A library with seven books and their loans."""

from __future__ import annotations

from parley import JsonObject, Service, ToolCall, ToolFailure

BOOKS: list[JsonObject] = [
    {"book_id": "B01", "title": "Emma", "author": "austen", "genre": "novel", "year": 1815, "pages": 474},
    {
        "book_id": "B02",
        "title": "Persuasion",
        "author": "austen",
        "genre": "novel",
        "year": 1817,
        "pages": 249,
    },
    {
        "book_id": "B03",
        "title": "Mansfield Park",
        "author": "austen",
        "genre": "novel",
        "year": 1814,
        "pages": 480,
    },
    {
        "book_id": "B04",
        "title": "Mysterious Island",
        "author": "verne",
        "genre": "adventure",
        "year": 1875,
        "pages": 493,
    },
    {
        "book_id": "B05",
        "title": "Round the Moon",
        "author": "verne",
        "genre": "adventure",
        "year": 1870,
        "pages": 185,
    },
    {"book_id": "B06", "title": "The Waves", "author": "woolf", "genre": "novel", "year": 1931, "pages": 324},
    {"book_id": "B07", "title": "Orlando", "author": "woolf", "genre": "novel", "year": 1928, "pages": 333},
]


class Library(Service):
    """A library service. Loans are stored in Parley's own store."""

    async def search(self, author: str | None = None, genre: str | None = None) -> JsonObject:
        """Find books by author, by kind, or by both."""
        return {
            "books": [
                {name: book[name] for name in ("book_id", "title", "year", "pages")}
                for book in BOOKS
                if author in {None, book["author"]} and genre in {None, book["genre"]}
            ]
        }

    async def get(self, title: str | None = None, book_id: str | None = None) -> JsonObject:
        """Look up one book, by row or title."""
        wanted = book_id or title
        for book in BOOKS:
            if book["book_id"] == wanted:
                return {
                    "book_id": wanted,
                    "book": book["title"],
                    "year": book["year"],
                    "pages": book["pages"],
                }
        raise ToolFailure("not_found", "There is no such book here.")

    async def lend(
        self,
        book_id: str,
        pickup_date: str,
        return_date: str,
        call: ToolCall,
        branch: str = "centre",
        gift_wrap: bool = False,
    ) -> JsonObject:
        """Lend a book once, for any number of repeated calls."""
        loan: JsonObject = {
            "book_id": book_id,
            "from": pickup_date,
            "until": return_date,
            "branch": branch,
            "gift_wrap": gift_wrap,
            "status": "made",
            "session_id": call.session_id,
        }
        code = f"L{1000 + sum(map(ord, call.idempotency_key)) * 7 % 9000}"
        made = await self.records.create("loans", code, {**loan, "loan_code": code})
        return {"loan_code": made["loan_code"]}

    async def loans(self, call: ToolCall) -> JsonObject:
        """List the current loans."""
        found = await self.records.find("loans", {"session_id": call.session_id, "status": "made"})
        return {"loans": [_show(loan) for loan in found]}

    async def loan(self, loan_code: str) -> JsonObject:
        """Look up one loan."""
        found = await self.records.find("loans", {"loan_code": loan_code, "status": "made"})
        if not found:
            raise ToolFailure("not_found", f"There is no loan {loan_code}.")
        return _show(found[0])

    async def cancel(self, loan_code: str, call: ToolCall) -> JsonObject:
        """Cancel a loan. A canceled loan remains canceled."""
        found = await self.records.find("loans", {"loan_code": loan_code})
        if not found:
            raise ToolFailure("not_found", f"There is no loan {loan_code}.")
        await self.records.update("loans", loan_code, {"status": "cancelled"})
        return {"loan_code": loan_code}


def _show(loan: JsonObject) -> JsonObject:
    title = next(book["title"] for book in BOOKS if book["book_id"] == loan["book_id"])
    return {"loan_code": loan["loan_code"], "book": title, "from": loan["from"], "until": loan["until"]}
