"""Say what a client cannot know by itself: a chart that is none, a model that did not serve (RS-5)."""

from __future__ import annotations

from orchestrator.res.answer import Response


async def warn(response: Response) -> None:
    """Add what limits the answer, unless it says so already."""
    context, answer, templates = response.context, response.answer, response.templates
    note = answer.frame["block"]["note"] if answer.frame is not None else None
    if note:
        warning = templates.render("warning", warning=note)
        if not any(warning in part or part in warning for part in answer.parts[-1:]):
            answer.add(warning, fixed=True)
    if context.log.flags.get("degraded") and context.world.domain.config.generation.tell_degraded:
        text = templates.render("degraded")
        said = (message.text for message in context.changes.state.history.messages if message.role == "agent")
        if not any(text in earlier for earlier in said):
            answer.add(text, fixed=True)
            answer.templates.append("degraded")
