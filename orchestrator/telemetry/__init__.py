"""What operators see of the system: logs, signals, metrics and traces (RT-24, CO-6).

Never contents: what users, models and tools say stays in the store.
"""

from orchestrator.telemetry.logs import get_logger as get_logger
from orchestrator.telemetry.signals import (
    RecordSignal as RecordSignal,
)
from orchestrator.telemetry.signals import (
    Signal as Signal,
)
from orchestrator.telemetry.signals import (
    SignalType as SignalType,
)
from orchestrator.telemetry.signals import (
    drop_signal as drop_signal,
)
from orchestrator.telemetry.signals import (
    log_signal as log_signal,
)
