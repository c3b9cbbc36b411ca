"""One module per command or group of commands, each with an `app`.

`parley.main` imports only the called module.
"""
