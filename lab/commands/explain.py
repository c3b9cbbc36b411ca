import asyncio
from typing import Annotated

import typer

from orchestrator.types import Json
from parley.commands.options import DEFAULT_DOMAIN, AsJson, Domain
from parley.output import print_json, print_prompts, print_table

app = typer.Typer()


@app.command("explain")
def explain_sentence(
    sentence: Annotated[str, typer.Argument(help="First message of a conversation.")],
    domain: Domain = DEFAULT_DOMAIN,
    model: Annotated[str | None, typer.Option(help="Model to ask if the local classifier is unsure.")] = None,
    json: AsJson = False,
) -> None:
    """Explain how Parley interprets a message.

    Prints the result of each NLU component, the deciding component, and the slot values.
    """
    from lab.domain_evaluation import explain_sentence as explain  # noqa: PLC0415  # slow to import

    found = asyncio.run(explain(sentence, domain, model))
    if json:
        print_json(found)
        return
    understood = found["understanding"]
    print_table(("component", "result"), [[one["reader"], one["said"]] for one in found["readers"]])
    flows = ", ".join(f"{flow['dact']} ({flow['score']:.2f})" for flow in understood["flows"])
    print(
        f"\nDecided by {found['decided_by']} with confidence {found['confidence']:.2f}: {understood['kind']} {flows}"
    )
    if found["model_problem"] is not None:
        print(f"The model did not respond: {found['model_problem']}{_describe_endpoint(found['endpoint'])}.")
    print(
        f"Below a confidence of {found['ask_a_model_below']:.2f}, Parley asks the model, if one is configured."
    )
    for name, value in understood["slots"].items():
        print(f"  {name} = {value}")
    if understood["not_understood"]:
        print(f"  not understood: {', '.join(f'“{words}”' for words in understood['not_understood'])}")
    for line in (*understood["assumed"], *found["problems"]):
        print(f"  {line}")
    print_prompts(found["prompts"])


def _describe_endpoint(problem: Json) -> str:
    """Describe a failed model call's endpoint and error. Return an empty string if no call failed."""
    if not problem:
        return ""
    said = [str(problem[name]) for name in ("status", "code", "field") if problem[name] is not None]
    details = f" ({', '.join(said)})" if said else ""
    never = "; it has not responded to any request yet, so the model may still be loading"
    return f" at {problem['endpoint']}{details}{never if problem['never_answered'] else ''}"
