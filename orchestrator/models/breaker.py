"""Circuit breakers for models, which stop calls to a failing endpoint and detect its recovery.

Each process has one circuit per endpoint and model.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum

from orchestrator.errors import (
    CircuitOpen,
    IllegalTransition,
    ModelNotAllowed,
    ModelRejected,
    ModelUnavailable,
)
from orchestrator.models.profiles import ProfileBook, describe


class CircuitState(StrEnum):
    CLOSED = "closed"
    """Requests are sent."""
    OPEN = "open"
    """No requests are sent until the reset timeout ends."""
    HALF_OPEN = "half_open"
    """One request at a time is sent, to test whether the endpoint has recovered."""


class CircuitEvent(StrEnum):
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    """A failure below the threshold, or a failed probe."""
    TRIPPED = "tripped"
    """A failure that reaches the threshold, or that affects all requests, such as an invalid key."""
    COOLED = "cooled"
    """A request arrived after the reset timeout."""


TRANSITIONS: dict[tuple[CircuitState, CircuitEvent], CircuitState] = {
    (CircuitState.CLOSED, CircuitEvent.SUCCEEDED): CircuitState.CLOSED,
    (CircuitState.CLOSED, CircuitEvent.FAILED): CircuitState.CLOSED,
    (CircuitState.CLOSED, CircuitEvent.TRIPPED): CircuitState.OPEN,
    (CircuitState.OPEN, CircuitEvent.COOLED): CircuitState.HALF_OPEN,
    (CircuitState.HALF_OPEN, CircuitEvent.SUCCEEDED): CircuitState.CLOSED,
    (CircuitState.HALF_OPEN, CircuitEvent.FAILED): CircuitState.OPEN,
}
"""All valid transitions. While OPEN, answers to earlier requests are ignored."""


@dataclass(frozen=True, slots=True)
class BreakerPolicy:
    """The limits of a circuit breaker.

    `threshold` consecutive failures open the circuit for `cooling_s` seconds. An invalid key, an empty
    account or an unknown model opens the circuit immediately, for `long_cooling_s` seconds, because an
    operator must act.
    """

    threshold: int = 5
    cooling_s: float = 15.0
    long_cooling_s: float = 120.0


@dataclass(frozen=True, slots=True)
class Circuit:
    """The circuit of one endpoint and model.

    `failures`: consecutive failures. `opened_at`: monotonic time in seconds. `probing`: True while a probe is
    in progress. `generation`: the number of state changes.
    """

    state: CircuitState = CircuitState.CLOSED
    failures: int = 0
    opened_at: float = 0.0
    probing: bool = False
    generation: int = 0


@dataclass(frozen=True, slots=True)
class Permit:
    """Permission to send one request.

    `generation`: the circuit's generation when the permit was issued. `probe`: True if the request tests
    whether the endpoint has recovered.
    """

    generation: int
    probe: bool


@dataclass(frozen=True, slots=True)
class CircuitView:
    """The status of a circuit, for display.

    Attributes:
        retry_in_s: seconds until the next probe, or 0 if the circuit is not open.
        problem: the error code of the last failure.
        not_taken: request features that the endpoint rejected.
        never_answered: True if requests have failed and none has been answered yet.
    """

    endpoint: str
    model: str
    state: CircuitState
    failures: int
    retry_in_s: float
    problem: str | None = None
    not_taken: tuple[str, ...] = ()
    never_answered: bool = False


def advance(circuit: Circuit, event: CircuitEvent, now: float) -> Circuit:
    """Return the circuit after an event. Raises IllegalTransition if the circuit's state doesn't allow the event."""
    state = TRANSITIONS.get((circuit.state, event))
    if state is None:
        raise IllegalTransition(f"Circuit event {event} is not allowed in state {circuit.state}.")
    failed = event in {CircuitEvent.FAILED, CircuitEvent.TRIPPED}
    failures = circuit.failures + 1 if failed else circuit.failures
    if event is CircuitEvent.SUCCEEDED and state is CircuitState.CLOSED:
        failures = 0
    if state is circuit.state:
        return replace(circuit, failures=failures)
    opened_at = now if state is CircuitState.OPEN else circuit.opened_at
    return Circuit(state, failures, opened_at, probing=False, generation=circuit.generation + 1)


@dataclass(slots=True)
class Breaker:
    """A circuit breaker. Pass each permit to exactly one of `succeeded`, `failed` and `released`.

    Permits issued before the circuit's last state change no longer change the circuit.
    """

    endpoint: str
    model: str
    policy: BreakerPolicy
    clock: Callable[[], float]
    on_change: Callable[[CircuitView], None]
    profiles: ProfileBook = field(default_factory=ProfileBook)
    _circuit: Circuit = Circuit()
    _last: ModelUnavailable | None = None
    _answered: bool = False

    @property
    def state(self) -> CircuitState:
        return self._circuit.state

    @property
    def would_admit(self) -> bool:
        match self._circuit.state:
            case CircuitState.CLOSED:
                return True
            case CircuitState.OPEN:
                return self._retry_in_s() <= 0
            case CircuitState.HALF_OPEN:
                return not self._circuit.probing

    @property
    def never_answered(self) -> bool:
        """Return True if a request has failed and the endpoint has not answered any request yet."""
        return self._last is not None and not self._answered

    def view(self) -> CircuitView:
        circuit = self._circuit
        return CircuitView(
            self.endpoint,
            self.model,
            circuit.state,
            circuit.failures,
            self._retry_in_s(),
            problem=None if self._last is None else self._last.code,
            not_taken=describe(self.profiles.of((self.endpoint, self.model))),
            never_answered=self.never_answered,
        )

    def announce(self) -> None:
        """Pass the current view to `on_change`, after a change of the endpoint's profile."""
        self.on_change(self.view())

    @contextmanager
    def guard(self) -> Generator[None, None, None]:
        """Acquire a permit for the block, and release it according to the outcome. Raises CircuitOpen.

        A rate limit counts as a failure, because turns should not wait for this model while the limit lasts.
        """
        permit = self.admit()
        try:
            yield
        except ModelRejected:
            self.succeeded(permit)  # The endpoint works: only this request was rejected.
            raise
        except ModelUnavailable as error:
            self.failed(permit, error)
            raise
        except BaseException:
            self.released(permit)
            raise
        else:
            self.succeeded(permit)

    def admit(self) -> Permit:
        """Return a permit for one request, or raise CircuitOpen."""
        if not self.would_admit:
            raise CircuitOpen(
                f"The model {self.model} at {self.endpoint} failed {self._circuit.failures} times "
                "in a row; requests are suspended until it has had time to recover.",
                retry_after_s=self._retry_in_s(),
                because=self._last,
            )
        if self._circuit.state is CircuitState.OPEN:
            self._apply(CircuitEvent.COOLED)
        probe = self._circuit.state is CircuitState.HALF_OPEN
        if probe:
            self._circuit = replace(self._circuit, probing=True)
        return Permit(self._circuit.generation, probe)

    def succeeded(self, permit: Permit) -> None:
        """Release a permit and record that the endpoint answered."""
        self._answered = True
        if permit.generation == self._circuit.generation:
            self._apply(CircuitEvent.SUCCEEDED)

    def failed(self, permit: Permit, error: ModelUnavailable) -> None:
        """Release a permit and record that the endpoint failed."""
        if permit.generation != self._circuit.generation:
            return
        self._last = error
        closed = self._circuit.state is CircuitState.CLOSED
        enough = self._circuit.failures + 1 >= self.policy.threshold or isinstance(error, ModelNotAllowed)
        trips = closed and enough
        self._apply(CircuitEvent.TRIPPED if trips else CircuitEvent.FAILED)

    def released(self, permit: Permit) -> None:
        """Release the permit of an abandoned request, whose outcome is unknown."""
        if permit.probe and permit.generation == self._circuit.generation:
            self._circuit = replace(self._circuit, probing=False)

    def _apply(self, event: CircuitEvent) -> None:
        before = self._circuit.state
        self._circuit = advance(self._circuit, event, self.clock())
        if self._circuit.state is not before:
            self.on_change(self.view())

    def _retry_in_s(self) -> float:
        if self._circuit.state is not CircuitState.OPEN:
            return 0.0
        needs_somebody = isinstance(self._last, ModelNotAllowed)
        cooling_s = self.policy.long_cooling_s if needs_somebody else self.policy.cooling_s
        return max(0.0, self._circuit.opened_at + cooling_s - self.clock())


@dataclass(frozen=True, slots=True)
class BreakerBoard:
    """The circuit breakers of this process, created on first use, with the endpoints' profiles."""

    policy: BreakerPolicy
    clock: Callable[[], float]
    on_change: Callable[[CircuitView], None]
    profiles: ProfileBook = field(default_factory=ProfileBook)
    _breakers: dict[tuple[str, str], Breaker] = field(default_factory=dict[tuple[str, str], Breaker])

    def of(self, endpoint: str, model: str) -> Breaker:
        key = (endpoint, model)
        if key not in self._breakers:
            self._breakers[key] = Breaker(
                endpoint, model, self.policy, self.clock, self.on_change, self.profiles
            )
        return self._breakers[key]
