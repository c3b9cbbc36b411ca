from typing import Annotated

from fastapi import Query

from orchestrator.turns.submission import MAX_WAIT_S

Limit = Annotated[int, Query(ge=1, le=1000)]
Number = Annotated[int, Query(ge=0, le=2**53)]
Before = Annotated[int | None, Query(ge=1, le=2**53, description="Only turns with a lower `seq`.")]
Wait = Annotated[float | None, Query(ge=0, le=MAX_WAIT_S)]
AtEpoch = Annotated[
    int | None, Query(ge=0, le=2**53, description="Version to read. Default: the current version.")
]
