"""`parley explain`: show how a sentence is understood, by which reader, and why."""

import asyncio
from typing import Annotated

import typer

from parley.commands.options import DEFAULT_DOMAIN, AsJson, Domain
from parley.output import print_json, print_prompts, print_table

app = typer.Typer()


@app.command("explain")
def explain_sentence(
    sentence: Annotated[str, typer.Argument(help="What somebody says at the beginning of a conversation.")],
    domain: Domain = DEFAULT_DOMAIN,
    model: Annotated[str | None, typer.Option(help="Let this model read what System 1 is unsure of.")] = None,
    json: AsJson = False,
) -> None:
    """Show how a sentence is understood.

    What each reader makes of it, who decides, and the values that were found.
    """
    from parley.evaluation.domains import explain_sentence as explain  # noqa: PLC0415  # slow to import

    found = asyncio.run(explain(sentence, domain, model))
    if json:
        print_json(found)
        return
    understood = found["understanding"]
    print_table(("reader", "said"), [[one["reader"], one["said"]] for one in found["readers"]])
    flows = ", ".join(f"{flow['dact']} ({flow['score']:.2f})" for flow in understood["flows"])
    print(f"\nDecided by {found['decided_by']}, {found['confidence']:.2f} sure: {understood['kind']} {flows}")
    print(f"Below {found['ask_a_model_below']:.2f} a model is asked, if there is one.")
    for name, value in understood["slots"].items():
        print(f"  {name} = {value}")
    for line in (*understood["assumed"], *found["problems"]):
        print(f"  {line}")
    print_prompts(found["prompts"])
