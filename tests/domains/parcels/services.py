"""A warehouse with confidential data in its errors: the password, and the request."""

from __future__ import annotations

import os
from typing import NoReturn

from parley import JsonObject, Service


def _connect(address: str) -> NoReturn:
    raise ConnectionError(f"cannot connect to {address}")


class Warehouse(Service):
    async def weigh(self, *, parcel: str) -> JsonObject:
        return {"weight": f"{os.environ['WAREHOUSE_RESULT']} of {parcel}"}

    def open(self, *, parcel: str) -> JsonObject:
        address = f"mysql://root:{os.environ['WAREHOUSE_STORE']}@warehouse/{parcel}"
        try:
            _connect(address)
        except ConnectionError as error:
            raise RuntimeError(f"no row for {parcel} with {os.environ['WAREHOUSE_STORE']}") from error

    async def stamps(self, *, parcel: str) -> JsonObject:
        return {"count": f"{os.environ['WAREHOUSE_RESULT']} on {parcel}"}
