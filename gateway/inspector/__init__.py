"""The inspector: a page at `/` to talk to the system and watch it work.

Plain HTML, CSS and ES modules in `static/`, using only the public API.
"""
