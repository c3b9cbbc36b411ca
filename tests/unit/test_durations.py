"""RT-24: what each turn observes is served as Prometheus expects a histogram."""

from prometheus_client import REGISTRY, CollectorRegistry, Histogram, generate_latest

from orchestrator.telemetry.metrics import Durations

SECONDS = (0.0, 0.0005, 0.0006, 0.005, 0.3, 119.9, 120.0, 500.0)
BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)


def test_durations_are_served_as_the_librarys_histogram_serves_them() -> None:
    theirs = Histogram("x_seconds", "Of x.", ["phase"], buckets=BOUNDS, registry=None)
    plain = Histogram("y_seconds", "Of y.", buckets=BOUNDS, registry=None)
    ours, our_plain = Durations("x_seconds", "Of x.", "phase"), Durations("y_seconds", "Of y.")
    try:
        for seconds in SECONDS:
            theirs.labels("load").observe(seconds)
            ours.observe(seconds, "load")
        theirs.labels("record").observe(1.5)
        ours.observe(1.5, "record")
        assert _served(ours) == _served(theirs)
        assert _served(our_plain) == _served(plain), "served from the start"
    finally:
        REGISTRY.unregister(ours)
        REGISTRY.unregister(our_plain)


def _served(collector: Durations | Histogram) -> list[str]:
    registry = CollectorRegistry()
    registry.register(collector)
    return [line for line in generate_latest(registry).decode().splitlines() if "_created" not in line]
