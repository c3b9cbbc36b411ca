"""Evaluate a domain: find its conversations, run them with and without models, keep and report what came of it."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from orchestrator.adapters.domains.folder import domain_folder, load_domain, read_prompts
from orchestrator.adapters.models.pool import ModelPool, read_endpoints
from orchestrator.domain.evaluations import ConversationEntry
from orchestrator.errors import InvalidInput
from orchestrator.nlu.readers.system1 import System1
from orchestrator.settings import NO_STORES, read_settings
from orchestrator.telemetry import RecordSignal, drop_signal
from orchestrator.types import JsonObject
from parley.evaluation.conversations import Evaluated, Outcome, evaluate, read_file
from parley.evaluation.explain import explain
from parley.evaluation.faults.cases import part_cases, take_kept
from parley.evaluation.faults.running import Workers
from parley.evaluation.faults.sound import Sounds
from parley.evaluation.report import write_report
from parley.evaluation.rubric import Judge
from parley.evaluation.runs import (
    PromptUse,
    Variant,
    describe_run,
    find_regressions,
    find_run,
    find_shortfalls,
    keep,
    read_bounds,
)
from parley.evaluation.scores import measure
from parley.output import progress

Conversations = Mapping[str, Sequence[ConversationEntry]]


@dataclass(frozen=True, slots=True)
class DomainReport:
    """`runs`: one for each variant, the last one is reported. `page`: the HTML page. `findings`: what is too low."""

    runs: list[JsonObject]
    page: Path
    findings: list[str]


def find_conversations(target: str) -> tuple[str, Conversations] | None:
    """Find the domain that is meant and its conversations, by file; None for something else.

    `target`: a domain's name or folder, or one file of its `evaluations/`.

    Raises:
        InvalidInput: the domain has no conversations.
    """
    path = Path(target)
    is_file = path.suffix == ".yaml" and path.is_file()
    domain = (
        str(path.resolve().parents[1]) if is_file and path.resolve().parent.name == "evaluations" else target
    )
    folder = domain_folder(domain)
    if folder is None:
        return None
    files = [path] if is_file else sorted((folder / "evaluations").glob("*.yaml"))
    if not files:
        raise InvalidInput(f"{folder} has no conversations: write evaluations/*.yaml.", field="target")
    return domain, {file.stem: read_file(file).conversations for file in files}


async def evaluate_domain(
    domain: str,
    files: Conversations,
    *,
    variants: Sequence[Variant],
    judge: str | None,
    bounds: Sequence[str],
    against: str | None,
    folder: Path,
    notice: Callable[[str], None],
) -> DomainReport:
    """Take a domain's conversations through the Agent.

    Each of the `variants` gives a run of its own; without a model, System 1 understands alone. What learns from some of
    the examples is reported beside the others, and neither kept nor held to bounds. `judge`: the model that judges
    answers by sentences. `against`: a run that the last one may not be worse than. `folder`: where runs are kept.

    Raises:
        InvalidInput: a bound or a run that cannot be read, or no endpoint for models.
        ConfigurationError: the domain has mistakes.
    """
    limits = read_bounds(bounds)
    earlier = find_run(against, folder) if against else None
    loaded = load_domain(domain)
    system1 = System1.for_domain(loaded.domain)
    edges = {str(flow.spec.dact): flow.spec.edge_flows for flow in loaded.domain.flows.values()}
    sections = [_read_sections(variant) for variant in variants]
    runs: list[JsonObject] = []
    files, kept = part_cases(files)
    findings = await take_kept(Sounds(Workers(domain, system1)), kept) if kept else []
    async with open_model(judge) as judging:
        config = loaded.domain.config
        asked = judging.engineer(config) if judging is not None else None
        judging_by = Judge.of(asked, config) if asked is not None else None
        for variant, laid_over in zip(variants, sections, strict=True):
            use = PromptUse()
            async with open_model(variant.model, use.note) as pool:
                few = variant.examples
                learnt = system1 if few is None else System1.for_domain(loaded.domain, examples=few)
                evaluated = Evaluated(loaded, learnt, pool, laid_over, judging_by)
                with progress(variant.name) as counted:
                    outcomes = await evaluate(files, evaluated, notice, counted)
            _notice_unjudged(outcomes, notice)
            run = describe_run(loaded.domain.name, variant, outcomes, measure(outcomes, edges), use)
            runs.append(run)
            if variant.examples is None:
                keep(run, folder)
                findings += [*find_shortfalls(run["figures"], limits)]
    findings += [*find_regressions(runs[-1], earlier)] if earlier is not None else []
    page = folder / f"{runs[-1]['run']}.html"
    page.write_text(write_report([*([earlier] if earlier else []), *runs], findings), encoding="utf-8")
    return DomainReport(runs, page, findings)


def _read_sections(variant: Variant) -> JsonObject:
    """Read the prompts that a variant tries, as configuration."""
    if variant.prompts is None:
        return {}
    prompts = read_prompts(variant.prompts)
    if not prompts:
        raise InvalidInput(f"{variant.prompts} holds no prompts, such as nlu_think.md.", field="prompts")
    return {"prompts": prompts}


def _notice_unjudged(outcomes: Sequence[Outcome], notice: Callable[[str], None]) -> None:
    """Say how many criteria nobody has judged, and why the first was not."""
    verdicts = (verdict for outcome in outcomes for turn in outcome.turns for verdict in turn.verdicts)
    unjudged = [verdict for verdict in verdicts if verdict.met is None]
    if unjudged:
        many = "criterion was" if len(unjudged) == 1 else "criteria were"
        notice(f"{len(unjudged)} {many} not judged: {unjudged[0].why} (--judge MODEL).")


@asynccontextmanager
async def open_model(
    model: str | None, record: RecordSignal = drop_signal
) -> AsyncGenerator[ModelPool | None]:
    """Open the endpoint that the environment configures. Raises InvalidInput when there is none."""
    if model is None:
        yield None
        return
    endpoints = read_endpoints(read_settings(**NO_STORES))
    if not endpoints:
        raise InvalidInput("A model needs an endpoint: set OPENAI_API_KEY or OPENAI_BASE_URL.", field="model")
    pool = ModelPool(endpoints, model=model, record=record)
    try:
        yield pool
    finally:
        await pool.aclose()


async def explain_sentence(sentence: str, domain: str, model: str | None) -> JsonObject:
    """Show how a domain understands a sentence; see `explain`."""
    loaded = load_domain(domain)
    use = PromptUse()
    async with open_model(model, use.note) as pool:
        asker = pool.engineer(loaded.domain.config) if pool is not None else None
        askers = [asker] if asker is not None else []
        found = await explain(sentence, loaded, System1.for_domain(loaded.domain), askers)
    return {**found, "prompts": use.figures}
