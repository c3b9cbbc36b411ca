"""The inspector, a page at `/` for chatting with the assistant and inspecting its state.

The page consists of plain HTML, CSS and ES modules in `static/`, and uses only the public API.
"""
