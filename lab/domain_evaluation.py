"""Evaluate a domain on conversations, once per variant, and store the runs."""

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from lab.evaluation.conversations import Evaluated, Outcome, evaluate, read_file, report_wrong
from lab.evaluation.explain import explain
from lab.evaluation.outside import list_services, read_reset
from lab.evaluation.rubric import Judge
from lab.evaluation.runs import (
    PromptUse,
    Variant,
    describe_run,
    find_regressions,
    find_run,
    find_shortfalls,
    keep,
    read_bounds,
)
from lab.evaluation.scores import measure
from lab.faults.cases import part_cases, take_kept
from lab.faults.running import Workers
from lab.faults.sound import Sounds
from lab.simulation.running import Simulated, simulate
from orchestrator.adapters.domains.folder import domain_folder, load_domain, read_prompts
from orchestrator.adapters.models.pool import ModelPool, read_endpoints
from orchestrator.domain.evaluations import ConversationEntry
from orchestrator.errors import InvalidInput
from orchestrator.nlu.system1 import System1
from orchestrator.settings import NO_STORES, read_settings
from orchestrator.telemetry import RecordSignal, Signal, SignalType, drop_signal
from orchestrator.types import DEFAULT_TENANT, Json, JsonObject
from parley.output import progress

Conversations = Mapping[str, Sequence[ConversationEntry]]


@dataclass(frozen=True, slots=True)
class DomainReport:
    """The results of a domain's evaluation.

    `runs`: one run per variant. `path`: file of the last run. `findings`: descriptions of scores below their limits,
    regressions and failed fault cases.
    """

    runs: list[JsonObject]
    path: Path
    findings: list[str]


def find_conversations(target: str, *, is_needed: bool = True) -> tuple[str, Conversations]:
    """Return a domain's name or folder, and its conversations by file name.

    `target`: a domain's name or folder, or a file in its `evaluations/` folder. `is_needed`: True to require
    conversations.

    Raises:
        InvalidInput: the domain does not exist, or has no conversations.
    """
    path = Path(target)
    is_file = path.suffix == ".yaml" and path.is_file()
    domain = (
        str(path.resolve().parents[1]) if is_file and path.resolve().parent.name == "evaluations" else target
    )
    folder = domain_folder(domain)
    if folder is None:
        raise InvalidInput(f"{target!r} is not a domain: use its name or its folder.", field="target")
    files = [path] if is_file else sorted((folder / "evaluations").glob("*.yaml"))
    if not files and is_needed:
        raise InvalidInput(f"{folder} has no test conversations: add evaluations/*.yaml.", field="target")
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
    tenant: str = DEFAULT_TENANT,
    simulated: Simulated | None = None,
) -> DomainReport:
    """Run a domain's conversations, or those of simulated users, through the Agent.

    Each variant is a separate run. Variants without a model use only the local classifier. `judge`: the model that
    grades answers, or None. `bounds`: minimum scores, such as ``slot_f1=0.9``. `against`: a stored run to compare the
    last run with, or None. `folder`: folder for stored runs. `notice`: called with each message for the author.
    `tenant`: tenant whose operators can see the runs. `simulated`: the simulated users to run, or None for the
    domain's conversations.

    Raises:
        InvalidInput: a minimum score or a stored run is invalid, or no model endpoint is configured.
        ConfigurationError: the domain has mistakes.
    """
    limits = read_bounds(bounds)
    earlier = find_run(against, folder) if against else None
    loaded = load_domain(domain)
    system1 = System1.for_domain(loaded.domain)
    edges = {str(flow.spec.dact): flow.spec.edge_flows for flow in loaded.domain.flows.values()}
    sections = [_read_sections(variant) for variant in variants]
    reset = read_reset(loaded.domain.folder)
    _tell(list_services(loaded.domain), notice)
    runs, paths = list[JsonObject](), list[Path]()
    files, kept = part_cases(files)
    findings = await take_kept(Sounds(Workers(domain, system1)), kept) if kept else []
    async with open_model(judge) as judging:
        config = loaded.domain.config
        asked = judging.engineer(config) if judging is not None else None
        judging_by = Judge.of(asked, config) if asked is not None else None
        for variant, laid_over in zip(variants, sections, strict=True):
            use = PromptUse()
            async with open_model(variant.model, use.note) as pool:
                evaluated = Evaluated(loaded, system1, pool, laid_over, judging_by, reset)
                outcomes = await _hold(files, simulated, evaluated, variant.name, notice)
            _notice_unjudged(outcomes, notice)
            run = describe_run(loaded.domain.name, variant, outcomes, measure(outcomes, edges), use, tenant)
            runs.append(run)
            _tell(report_wrong(outcomes), notice)
            paths.append(keep(run, folder))
            findings += [*find_shortfalls(run["figures"], limits)]
    findings += [*find_regressions(runs[-1], earlier)] if earlier is not None else []
    return DomainReport(runs, paths[-1], findings)


async def _hold(
    files: Conversations,
    simulated: Simulated | None,
    evaluated: Evaluated,
    name: str,
    notice: Callable[[str], None],
) -> list[Outcome]:
    """Run the conversations in the files or, if `simulated` is given, those of simulated users.

    `name`: label of the progress bar.
    """
    with progress(name) as counted:
        if simulated is not None:
            return await simulate(evaluated, simulated, notice, counted)
        return await evaluate(files, evaluated, notice, counted)


def _tell(lines: Iterable[str], notice: Callable[[str], None]) -> None:
    for line in lines:
        notice(line)


def _read_sections(variant: Variant) -> JsonObject:
    """Return configuration with the variant's prompts, or {} if it uses the domain's prompts.

    Raises InvalidInput if the variant's folder has no prompts.
    """
    if variant.prompts is None:
        return {}
    prompts = read_prompts(variant.prompts)
    if not prompts:
        raise InvalidInput(
            f"{variant.prompts} contains no prompts, for example nlu_think.md.", field="prompts"
        )
    return {"prompts": prompts}


def _notice_unjudged(outcomes: Sequence[Outcome], notice: Callable[[str], None]) -> None:
    verdicts = (verdict for outcome in outcomes for turn in outcome.turns for verdict in turn.verdicts)
    unjudged = [verdict for verdict in verdicts if verdict.met is None]
    if unjudged:
        many = "criterion was" if len(unjudged) == 1 else "criteria were"
        notice(f"{len(unjudged)} {many} not graded: {unjudged[0].why}; use --judge MODEL.")


@asynccontextmanager
async def open_model(
    model: str | None, record: RecordSignal = drop_signal
) -> AsyncGenerator[ModelPool | None]:
    """Yield a pool that calls `model`, or None if `model` is None. Raises InvalidInput if no endpoint is configured."""
    if model is None:
        yield None
        return
    endpoints = read_endpoints(read_settings(**NO_STORES, PARLEY_MODEL=model))
    if not endpoints:
        raise InvalidInput(
            "A model needs an endpoint: set OPENAI_API_KEY or OPENAI_BASE_URL, or specify it as provider:name.",
            field="model",
        )
    pool = ModelPool(endpoints, model=model, record=record)
    try:
        yield pool
    finally:
        await pool.aclose()


async def explain_sentence(sentence: str, domain: str, model: str | None) -> JsonObject:
    loaded = load_domain(domain)
    use = PromptUse()
    problems: list[Json] = []

    def note(signal: Signal) -> None:
        use.note(signal)
        if signal.type is SignalType.MODEL_CALL and signal.payload["problem"] is not None:
            problems.append(signal.payload["problem"])

    async with open_model(model, note) as pool:
        asker = pool.engineer(loaded.domain.config) if pool is not None else None
        found = await explain(sentence, loaded, System1.for_domain(loaded.domain), asker)
    return {**found, "prompts": use.figures, "endpoint": problems[-1] if problems else None}
