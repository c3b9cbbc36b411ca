"""`parley soak`: conversations over a whole stack while its parts are killed, frozen and emptied.

`bookings` holds the conversations, `faults` breaks things, `checks` reads the store afterwards,
`runner` brings them together for as long as one likes.
"""
