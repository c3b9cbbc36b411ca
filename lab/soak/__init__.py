"""`parley soak`: conversations on a whole stack while its processes are killed and frozen and its Redis is emptied.

`bookings` has the conversations, `faults` injects faults, `checks` examines the stored data, and `runner` runs all.
"""
