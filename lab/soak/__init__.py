"""`parley soak`: run conversations on a full stack while its processes are killed or frozen and Redis is flushed.

`bookings` defines the conversations, `faults` injects faults, `checks` examines the stored data, and `runner` runs
the test.
"""
