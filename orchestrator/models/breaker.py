"""Circuit breakers: stop asking an endpoint that keeps failing, and find out when it is back.

One circuit per endpoint and model, kept in this process. Time is passed in. What counts as a
failure is decided by the caller.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from orchestrator.errors import (
    CircuitOpen,
    IllegalTransition,
    ModelFailed,
    ModelTimedOut,
    ModelUnavailable,
    RateLimited,
)


class CircuitState(StrEnum):
    CLOSED = "closed"
    """Requests pass."""
    OPEN = "open"
    """Nothing is sent until the cooling time is over."""
    HALF_OPEN = "half_open"
    """One request at a time passes, to see whether the endpoint is back."""


class CircuitEvent(StrEnum):
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    """A failure, with others to spare before the threshold."""
    TRIPPED = "tripped"
    """The failure that reaches the threshold."""
    COOLED = "cooled"
    """A request arrives after the cooling time."""


TRANSITIONS: dict[tuple[CircuitState, CircuitEvent], CircuitState] = {
    (CircuitState.CLOSED, CircuitEvent.SUCCEEDED): CircuitState.CLOSED,
    (CircuitState.CLOSED, CircuitEvent.FAILED): CircuitState.CLOSED,
    (CircuitState.CLOSED, CircuitEvent.TRIPPED): CircuitState.OPEN,
    (CircuitState.OPEN, CircuitEvent.COOLED): CircuitState.HALF_OPEN,
    (CircuitState.HALF_OPEN, CircuitEvent.SUCCEEDED): CircuitState.CLOSED,
    (CircuitState.HALF_OPEN, CircuitEvent.FAILED): CircuitState.OPEN,
}
"""Every change there is. While OPEN nothing is sent, and answers to what was sent before are ignored."""


@dataclass(frozen=True, slots=True)
class BreakerPolicy:
    """`threshold` failures in a row open the circuit for `cooling_s` seconds."""

    threshold: int = 5
    cooling_s: float = 15.0


@dataclass(frozen=True, slots=True)
class Circuit:
    """What is known about one endpoint and model. `generation` counts the state's changes."""

    state: CircuitState = CircuitState.CLOSED
    failures: int = 0
    opened_at: float = 0.0
    probing: bool = False
    generation: int = 0


@dataclass(frozen=True, slots=True)
class Permit:
    """The right to send one request, and the state's generation in which it was given."""

    generation: int
    probe: bool


@dataclass(frozen=True, slots=True)
class CircuitView:
    """A circuit for people to look at. `retry_in_s`: until the next probe may be sent."""

    endpoint: str
    model: str
    state: CircuitState
    failures: int
    retry_in_s: float


def advance(circuit: Circuit, event: CircuitEvent, now: float) -> Circuit:
    """Apply one event; raises IllegalTransition where the table has none."""
    state = TRANSITIONS.get((circuit.state, event))
    if state is None:
        raise IllegalTransition(f"A circuit that is {circuit.state} cannot take {event}.")
    failed = event in {CircuitEvent.FAILED, CircuitEvent.TRIPPED}
    failures = circuit.failures + 1 if failed else circuit.failures
    if event is CircuitEvent.SUCCEEDED and state is CircuitState.CLOSED:
        failures = 0
    if state is circuit.state:
        return replace(circuit, failures=failures)
    opened_at = now if state is CircuitState.OPEN else circuit.opened_at
    return Circuit(state, failures, opened_at, probing=False, generation=circuit.generation + 1)


class Breaker:
    """One circuit and its clock. Every permit is given back with exactly one of three words."""

    def __init__(
        self,
        endpoint: str,
        model: str,
        policy: BreakerPolicy,
        clock: Callable[[], float],
        on_change: Callable[[CircuitView], None],
    ) -> None:
        self._endpoint = endpoint
        self._model = model
        self._policy = policy
        self._clock = clock
        self._on_change = on_change
        self._circuit = Circuit()

    @property
    def state(self) -> CircuitState:
        return self._circuit.state

    @property
    def would_admit(self) -> bool:
        """Whether a request would pass now."""
        match self._circuit.state:
            case CircuitState.CLOSED:
                return True
            case CircuitState.OPEN:
                return self._retry_in_s() <= 0
            case CircuitState.HALF_OPEN:
                return not self._circuit.probing

    def view(self) -> CircuitView:
        circuit = self._circuit
        return CircuitView(self._endpoint, self._model, circuit.state, circuit.failures, self._retry_in_s())

    def admit(self) -> Permit:
        """Let one request pass, or raise CircuitOpen."""
        if not self.would_admit:
            raise CircuitOpen(
                f"The model {self._model} at {self._endpoint} failed {self._circuit.failures} times "
                "in a row; nothing is sent until it had time to recover.",
                retry_after_s=self._retry_in_s(),
            )
        if self._circuit.state is CircuitState.OPEN:
            self._apply(CircuitEvent.COOLED)
        probe = self._circuit.state is CircuitState.HALF_OPEN
        if probe:
            self._circuit = replace(self._circuit, probing=True)
        return Permit(self._circuit.generation, probe)

    def succeeded(self, permit: Permit) -> None:
        """Give a permit back: the endpoint answered."""
        if permit.generation == self._circuit.generation:
            self._apply(CircuitEvent.SUCCEEDED)

    def failed(self, permit: Permit) -> None:
        """Give a permit back: the endpoint did not answer."""
        if permit.generation != self._circuit.generation:
            return
        closed = self._circuit.state is CircuitState.CLOSED
        trips = closed and self._circuit.failures + 1 >= self._policy.threshold
        self._apply(CircuitEvent.TRIPPED if trips else CircuitEvent.FAILED)

    def released(self, permit: Permit) -> None:
        """Give a permit back: the request was given up, so nothing is known."""
        if permit.probe and permit.generation == self._circuit.generation:
            self._circuit = replace(self._circuit, probing=False)

    def _apply(self, event: CircuitEvent) -> None:
        before = self._circuit.state
        self._circuit = advance(self._circuit, event, self._clock())
        if self._circuit.state is not before:
            self._on_change(self.view())

    def _retry_in_s(self) -> float:
        if self._circuit.state is not CircuitState.OPEN:
            return 0.0
        return max(0.0, self._circuit.opened_at + self._policy.cooling_s - self._clock())


class BreakerBoard:
    """The breakers of this process, made when they are first asked for."""

    def __init__(
        self,
        policy: BreakerPolicy,
        clock: Callable[[], float],
        on_change: Callable[[CircuitView], None],
    ) -> None:
        self._policy = policy
        self._clock = clock
        self._on_change = on_change
        self._breakers: dict[tuple[str, str], Breaker] = {}

    def of(self, endpoint: str, model: str) -> Breaker:
        key = (endpoint, model)
        if key not in self._breakers:
            self._breakers[key] = Breaker(endpoint, model, self._policy, self._clock, self._on_change)
        return self._breakers[key]

    def views(self) -> tuple[CircuitView, ...]:
        return tuple(breaker.view() for breaker in self._breakers.values())


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """`attempts` counts the first try. Waits over `longest_wait_s` are not worth waiting for."""

    attempts: int = 3
    base_s: float = 0.5
    cap_s: float = 8.0
    longest_wait_s: float = 20.0


def wait_before_retry(
    policy: RetryPolicy, failed: int, error: ModelUnavailable, random: Callable[[], float]
) -> float | None:
    """Decide how long to wait after a failure, in seconds; None means that a retry is no use.

    Args:
        policy: the bounds.
        failed: how many attempts have failed, at least 1.
        error: how the last one failed.
        random: uniform in [0, 1).
    """
    if failed >= policy.attempts:
        return None
    match error:
        case RateLimited(retry_after_s=float() | int() as asked):
            wait = asked + random() * policy.base_s
            return wait if wait <= policy.longest_wait_s else None
        case RateLimited() | ModelTimedOut() | ModelFailed():
            return random() * min(policy.cap_s, policy.base_s * 2 ** (failed - 1))
        case _:
            return None
