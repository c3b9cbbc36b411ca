"""Build an Agent from a loaded domain. `bootstrap` loads the domain and creates the services."""

from collections.abc import Mapping

from orchestrator.agent.agent import Agent
from orchestrator.agent.modules import AgentPorts, Modules
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.specification import Family
from orchestrator.domain.model import Domain
from orchestrator.domain.registry import Registry
from orchestrator.models.engineer import PromptEngineer
from orchestrator.nlu.module import NLU
from orchestrator.nlu.system1 import System1
from orchestrator.pex.documents import AnswerFromDocuments
from orchestrator.pex.policy import PEX, BasePolicy
from orchestrator.pex.skills.runner import SkillRunner
from orchestrator.plans.advisor import Advisor
from orchestrator.plans.planner import Planner
from orchestrator.plans.policy import PlanPolicy
from orchestrator.res.languages import load_base_templates
from orchestrator.res.module import RES
from orchestrator.res.streaming import TokenStream
from orchestrator.res.templates import Templates
from orchestrator.tools.middleware import ToolPorts
from orchestrator.tools.runner import ToolRunner
from orchestrator.tools.toolbox import Services, Toolbox
from orchestrator.types import Dact

REMEMBER = "Memory.remember"
"""The `target` of tools that store users' memories; see `orchestrator.memory.user_memory`."""


def build_agent(
    domain: Domain,
    policies: Mapping[Dact, type],
    services: Services,
    *,
    tool_ports: ToolPorts | None = None,
    engineer: PromptEngineer | None = None,
    system1: System1 | None = None,
    ports: AgentPorts | None = None,
    development: bool = False,
) -> Agent:
    """Create a domain's agent.

    Args:
        domain: the compiled domain.
        policies: the domain's own policy classes, by flow name. Other flows use their family's default
            policy.
        services: returns a tenant's service instances.
        tool_ports: tool transports other than services, and shared stores. Default: in-process stores.
        engineer: calls models. Default: no models, only the local classifier and templates.
        system1: a trained local classifier. Default: train one, which takes one or two seconds.
        ports: the process's other ports. Default: none.
        development: True to enable the domain's commands for developers.

    Raises:
        ConfigurationError: if a schema or template cannot be compiled.
    """
    registry = Registry(domain.entities)
    nlu = NLU(domain, engineer, system1=system1, development=development)
    planner = Planner(Advisor(engineer, nlu.ground))
    carried_out = make_policies(domain, policies, planner, engineer)
    tools = ToolRunner(Toolbox(domain.tools, services), domain, tool_ports)
    return Agent(
        Modules(
            domain=domain,
            registry=registry,
            nlu=nlu,
            pex=PEX(carried_out, tools),
            res=RES(
                Templates(domain, registry, load_base_templates(domain.config.language.default)), engineer
            ),
            planner=planner,
            services=services,
            ports=ports or AgentPorts(),
            remembering=_find_remembering(domain),
            answering=next(
                (dact for dact, one in carried_out.items() if isinstance(one, AnswerFromDocuments)), None
            ),
        )
    )


def _find_remembering(domain: Domain) -> frozenset[str]:
    tools = {tool.tool_id for tool in domain.tools.values() if tool.target == REMEMBER}
    return frozenset(
        flow.spec.dact
        for flow in domain.flows.values()
        if any(use.tool_id in tools for use in flow.spec.tools)
    )


def make_policies(
    domain: Domain,
    own: Mapping[Dact, type],
    planner: Planner,
    engineer: PromptEngineer | None,
) -> dict[Dact, BasePolicy]:
    """Create a policy for each flow.

    If `engineer` is given, policies can run skills, rewrite queries and redraw frames.
    """
    skills = SkillRunner(domain, engineer, TokenStream) if engineer is not None and domain.skills else None
    policies = {dact: make_policy(own.get(dact), flow, planner) for dact, flow in domain.flows.items()}
    for policy in policies.values():
        policy.skills, policy.engineer = skills, engineer
    return policies


def make_policy(own: type | None, flow: type[BaseFlow], planner: Planner) -> BasePolicy:
    default = PlanPolicy if flow.spec.family is Family.PLAN else BasePolicy
    policy = (own or default)(flow.spec)
    if isinstance(policy, PlanPolicy):
        policy.planner = planner
    return policy
