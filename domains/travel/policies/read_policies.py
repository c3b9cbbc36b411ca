from __future__ import annotations

from typing import ClassVar

from parley import AnswerFromDocuments


class AskDocuments(AnswerFromDocuments):
    dact: ClassVar[str | None] = "ask_documents"
