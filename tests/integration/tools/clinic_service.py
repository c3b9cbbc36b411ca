"""A clinic's own service: appointments over HTTP, as written by third parties."""

from __future__ import annotations

from itertools import count
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

HOURS = ("09:00", "09:30", "10:00", "10:30", "11:00", "14:00", "15:30")


class Clinic:
    """Appointments by number. `late_by_an_hour`: a fault, new appointments are stored an hour later."""

    def __init__(self) -> None:
        self.late_by_an_hour = False
        self.resets = 0
        self._clear()

    def _clear(self) -> None:
        self.appointments: dict[str, dict[str, Any]] = {}
        self._made: dict[str, str] = {}
        self._numbers = count(1)

    def add(self, code: str, **appointment: str) -> None:
        """Add an appointment of another user."""
        self.appointments[code] = {"code": code, "treatment": "filling", **appointment}

    def application(self) -> Starlette:
        one = "/appointments/{code}"
        return Starlette(
            routes=[
                Route("/appointments", self._book, methods=["POST"]),
                Route("/appointments", self._list, methods=["GET"]),
                Route("/times", self._free, methods=["GET"]),
                Route(one, self._show, methods=["GET"]),
                Route(one, self._move, methods=["PUT"]),
                Route(one, self._cancel, methods=["DELETE"]),
                Route("/reset", self._begin_again, methods=["POST"]),
            ]
        )

    def _is_taken(self, wish: dict[str, Any], code: str = "") -> bool:
        others = (one for number, one in self.appointments.items() if number != code)
        return any((one["day"], one["time"]) == (wish["day"], wish["time"]) for one in others)

    async def _book(self, request: Request) -> Response:
        wish, key = await request.json(), request.headers["Idempotency-Key"]
        if key not in self._made:
            if self._is_taken(wish):
                return JSONResponse({"detail": "taken"}, 409)
            code = self._made[key] = f"D{next(self._numbers):04}"
            if self.late_by_an_hour:
                wish["time"] = f"{int(wish['time'][:2]) + 1:02}{wish['time'][2:]}"
            self.appointments[code] = {"code": code, **wish}
        return JSONResponse(self.appointments[self._made[key]], 201)

    async def _list(self, request: Request) -> Response:
        patient = request.query_params["patient"]
        mine = [one for one in self.appointments.values() if one["patient"] == patient]
        return JSONResponse({"appointments": mine})

    async def _free(self, request: Request) -> Response:
        day = request.query_params["day"]
        times = [time for time in HOURS if not self._is_taken({"day": day, "time": time})]
        return JSONResponse({"day": day, "times": [{"time": time} for time in times]})

    async def _show(self, request: Request) -> Response:
        found = self.appointments.get(request.path_params["code"])
        return JSONResponse(found) if found else JSONResponse({}, 404)

    async def _move(self, request: Request) -> Response:
        code, wish = request.path_params["code"], await request.json()
        if code not in self.appointments:
            return JSONResponse({}, 404)
        if self._is_taken(wish, code):
            return JSONResponse({"detail": "taken"}, 409)
        self.appointments[code] |= {"day": wish["day"], "time": wish["time"]}
        return JSONResponse(self.appointments[code])

    async def _cancel(self, request: Request) -> Response:
        cancelled = self.appointments.pop(request.path_params["code"], None)
        return JSONResponse(cancelled) if cancelled else JSONResponse({}, 404)

    async def _begin_again(self, _request: Request) -> Response:
        self._clear()
        self.resets += 1
        return JSONResponse({})
