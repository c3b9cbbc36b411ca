"""Observability: logs, signals, metrics and traces (RT-24, CO-6).

Telemetry contains no text from users, models or tools. Such text is only in the store.
"""

from orchestrator.telemetry.logs import get_logger
from orchestrator.telemetry.signals import RecordSignal, Signal, SignalType, drop_signal, log_signal

__all__ = ["RecordSignal", "Signal", "SignalType", "drop_signal", "get_logger", "log_signal"]
