"""Broken folders: every mistake is reported with its place, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.adapters.domains.folder import check_domain, load_domain
from orchestrator.errors import ConfigurationError
from tests.cases import for_each
from tests.unit.domain.factories import ONTOLOGY, SERVICES, TOOLS, edit, write_domain

TURN = "conversations.0.turns.0"


def find(folder: Path) -> dict[str, str]:
    """Return messages by place, without line numbers."""
    found: dict[str, str] = {}
    for problem in check_domain(folder):
        file, _, path = problem.place.partition(": ")
        found[f"{file.split(':')[0]}: {path}" if path else file.split(":")[0]] = problem.message
    return found


def test_five_mistakes_are_five_problems(tmp_path: Path) -> None:
    """FS-5: all mistakes are reported together, with their places in the file."""
    ontology = edit(
        ONTOLOGY,
        ('dax: "02B"', 'dax: "2B2"'),
        ("intent: Transform", "intent: Transfrom"),
        ("edge_flows: [search_flights]", "edge_flows: [serch_flights]"),
        ("type: date", "type: dates"),
        ("confirm: true", "confrim: true"),
    )
    problems = check_domain(write_domain(tmp_path, {"ontology.yaml": ontology}))

    assert [str(problem) for problem in problems] == [
        "ontology.yaml:23: flows.book_flight.confrim: unknown key; did you mean 'confirm'?",
        "ontology.yaml:9: flows.book_flight.dax: should be one to 3 different acts, one digit each (it is '2B2')",
        "ontology.yaml:10: flows.book_flight.intent: unknown intent 'Transfrom'; did you mean 'Transform'?",
        (
            "ontology.yaml:13: flows.book_flight.edge_flows.0: unknown flow 'serch_flights'; "
            "did you mean 'search_flights'?"
        ),
        (
            "ontology.yaml:19: flows.book_flight.slots.date.type: unknown slot type 'dates'; "
            "did you mean 'date'?"
        ),
    ]


def test_a_tool_that_answers_later_can_be_polled_and_accepts(tmp_path: Path) -> None:
    """RT-32: unusable declarations are reported."""
    name, _, rest = TOOLS.partition("    input_schema")
    later = f"{name}    later: {{poll_s: 60}}\n    compensation: flight_book\n    input_schema{rest}"
    outside = """
  fare_get:
    http: {url: "https://example.com/", headers: {Reply-To: "{callback_url}"}}
    input_schema: {type: object}
    output_schema: {type: object}
  fare_ask:
    mcp: {tool: ask, url: "https://example.com/mcp"}
    later: {}
    input_schema: {type: object}
    output_schema: {type: object}
"""
    assert find(write_domain(tmp_path, {"tools.yaml": later + outside})) == {
        "tools.yaml: tools.flight_book.later.poll_s": "needs a status_query to call",
        "tools.yaml: tools.flight_book.compensation": "can't be flight_book, which can answer later",
        "tools.yaml: tools.fare_get.later": (
            "is missing: {callback_url} receives the result of a tool that answers later"
        ),
        "tools.yaml: tools.fare_ask.later": "is only for service and http tools; MCP tools answer immediately",
    }


def test_a_bound_on_what_no_tool_knows(tmp_path: Path) -> None:
    """PX-17: a misspelled name would never require an approval."""
    name, _, rest = TOOLS.partition("    input_schema")
    tools = f"{name}    approval_above: {{no_such_value: 10}}\n    input_schema{rest}"

    (message,) = find(write_domain(tmp_path, {"tools.yaml": tools})).values()

    assert "unknown input or output 'no_such_value'" in message


BROKEN_ONTOLOGY = """\
intents: {Read: Find, Transform: Find}
slot_types:
  code: {pattern: "("}
entities:
  airport: {provider: Airprots}
flows:
  Search: {dax: "001", intent: Read}
  find_flight: {dax: "00A", intent: Read, fallback: nothing, mode: skill}
  book_flight:
    dax: "00a7b"
    intent: Transform
    examples: ["book {orgin}"]
    inputs: [flight_id]
    slots:
      origin: {type: source, entity: airprot}
      cabin: {type: category}
      place: {type: base, priority: elective, group: where}
      bags: {type: level, minimum: 5, maximum: 1}
    tools:
      - {tool_id: flight_bok}
      - {tool_id: flight_book, slot_mapping: {from: orgin, whence: origin}}
"""


def test_twenty_mistakes_in_every_kind_of_file_are_twenty_problems(tmp_path: Path) -> None:
    tools = edit(
        TOOLS,
        ("Flights.book", "Flights.bok"),
        ("output_schema: {type: object}", "output_schema: {type: objekt}"),
    )
    folder = write_domain(
        tmp_path,
        {
            "ontology.yaml": BROKEN_ONTOLOGY,
            "tools.yaml": tools,
            "domain.yaml": "thresholds: {confident: 2}\nsesion: {}\ncommands: [{pattern: x, flow: nowhere}]\n",
            "templates/find_flight.md.j2": "{% if %}",
            "policies/read_policies.py": 'class Find:\n    dact = "find_flights"\n',
        },
    )

    assert set(find(folder)) == {
        "domain.yaml: thresholds.confident",
        "domain.yaml: sesion",
        "domain.yaml: commands.0.flow",
        "tools.yaml: tools.flight_book.service",
        "tools.yaml: tools.flight_book.output_schema.type",
        "ontology.yaml: intents.Transform",
        "ontology.yaml: slot_types.code.pattern",
        "ontology.yaml: entities.airport.provider",
        "ontology.yaml: flows.Search",
        "ontology.yaml: flows.find_flight.fallback",
        "ontology.yaml: flows.find_flight.mode",
        "ontology.yaml: flows.book_flight.dax",
        "ontology.yaml: flows.book_flight.examples.0",
        "ontology.yaml: flows.book_flight.inputs.0",
        "ontology.yaml: flows.book_flight.slots.origin.entity",
        "ontology.yaml: flows.book_flight.slots.cabin.values",
        "ontology.yaml: flows.book_flight.slots.place.group",
        "ontology.yaml: flows.book_flight.slots.bags.minimum",
        "ontology.yaml: flows.book_flight.tools.0.tool_id",
        "ontology.yaml: flows.book_flight.tools.1.slot_mapping.from",
        "ontology.yaml: flows.book_flight.tools.1.slot_mapping.whence",
        "ontology.yaml: flows.book_flight.tools.1.slot_mapping",
        "templates/find_flight.md.j2: line 1",
        "policies/read_policies.py: Find.dact",
    }


@pytest.mark.parametrize(
    ("files", "place", "words"),
    [
        ({"ontology.yaml": "flows: [\n"}, "ontology.yaml: line 2, column 1", "is not valid YAML"),
        ({"ontology.yaml": b"flows: \xff\xfe"}, "ontology.yaml", "is not UTF-8 text (byte 8)"),
        ({"ontology.yaml": ""}, "ontology.yaml", "is empty"),
        ({"ontology.yaml": "- a\n- b\n"}, "ontology.yaml", "should be a mapping"),
        ({"ontology.yaml": "[" * 5000 + "]" * 5000}, "ontology.yaml", "nested too deeply"),
        ({"ontology.yaml": "a: !!python/object:os.system {}\n"}, "ontology.yaml: line 1, column 4", "constructor"),
        ({"services.py": "import nothing_of_this_name\n"}, "services.py: import", "ModuleNotFoundError"),
        ({"services.py": "def broken(:\n"}, "services.py: import", "SyntaxError"),
        ({"services.py": "raise SystemExit(3)\n"}, "services.py: import", "SystemExit"),
        ({"policies/other.py": ""}, "policies/other.py", "not one of the seven policy files"),
        ({"skills/book/SKILL.md": "---\nname: a\ndescription: b\n---\n"}, "skills/book/SKILL.md", "unknown flow"),
        ({"skills/book_flight/SKILL.md": "Do it."}, "skills/book_flight/SKILL.md", "front matter"),
        ({"templates/book_flight.md.j2": "{{ day | dya }}"}, "templates/book_flight.md.j2: line 1", "mean 'day'?"),
        ({"templates/book_flight.md.j2": "{{ 1 is nun }}"}, "templates/book_flight.md.j2: line 1", "unknown test"),
        ({"templates/book_fligth.md.j2": "Hi"}, "templates/book_fligth.md.j2", "did you mean 'book_flight'?"),
        ({"templates/book_flight.md.j2": "{{ dta.x }}"}, "templates/book_flight.md.j2: line 1", "mean 'data'?"),
        ({"templates/book_flight.md.j2": "{{ slots.orign }}"}, "templates/book_flight.md.j2: line 1", "mean 'origin'?"),
        ({"evaluations/a.yaml": "conversations: [{turns: [{}]}]"}, f"evaluations/a.yaml: {TURN}", "user text"),
        ({"domain.yaml": "persona: Bob\n"}, "domain.yaml: persona", "should be a mapping"),
        ({"domain.yaml": "language\n"}, "domain.yaml", "sections"),
    ],
)  # fmt: skip
def test_a_mistake_has_one_line(
    tmp_path: Path, files: dict[str, str | bytes], place: str, words: str
) -> None:
    problems = find(write_domain(tmp_path, files))

    assert words in problems[place]
    assert not any("\n" in message for message in problems.values())


SKILL = "skills/book_flight/SKILL.md"
CODE_TOOL = """\
tools:
  flight_book:
    service: Flights.book
    input_schema:
      type: object
      required: [from, to, day]
      properties:
        from: {type: string}
        to: {type: string}
        day: {type: string}
        cabin: {type: string, MARK}
    output_schema: {type: object}
"""


def skill(matter: str, text: str = "Do it.") -> dict[str, str | bytes]:
    return {SKILL: f"---\nname: book_flight\ndescription: Books.\n{matter}\n---\n{text}\n"}


@pytest.mark.parametrize(
    ("files", "place", "words"),
    [
        ({SKILL: "---\nname: books\ndescription: b\n---\nDo it.\n"}, f"{SKILL}: name", "folder and flow"),
        ({SKILL: "---\nname: book_flight\n---\nDo it.\n"}, f"{SKILL}: description", "missing"),
        (skill("", text=""), SKILL, "no instructions below"),
        (skill("tools: [flight_bok]"), f"{SKILL}: tools.0", "did you mean 'flight_book'"),
        (skill("tools: []"), f"{SKILL}: tools", "1 to 3 of its flow's tools"),
        (skill("components: [memory]"), f"{SKILL}: components.0", "unknown component 'memory'"),
        (skill("result: {type: object, anyOf: [{}]}"), f"{SKILL}: result.anyOf", "providers reject"),
        (
            {
                **skill("tools: [flight_book]"),
                "tools.yaml": CODE_TOOL.replace(", MARK", "").replace(
                    "      required: [from", "      allOf: [{minProperties: 3}]\n      required: [from"
                ),
            },
            f"{SKILL}: tools",
            "'allOf' at the top level of its input_schema",
        ),
        (skill("reflect: true"), f"{SKILL}: criteria", "needs criteria"),
        (skill("language: perl"), f"{SKILL}: language", "python"),
        (skill("result: {type: list}"), f"{SKILL}: result.type", "not a valid JSON Schema"),
        (skill("crietria: [a]"), f"{SKILL}: crietria", "did you mean 'criteria'"),
    ],
)
def test_a_mistake_of_a_skill_has_its_line(
    tmp_path: Path, files: dict[str, str | bytes], place: str, words: str
) -> None:
    """PX-5"""
    problems = find(write_domain(tmp_path, files))
    assert words in problems[place]


@pytest.mark.parametrize(
    ("mark", "words"),
    [
        ("x-guardrail: ruby", "should be one of python, sql"),
        ("x-statements: [select]", "is allowed only for inputs with x-guardrail: sql"),
        ("x-guardrail: sql, x-statements: [vacuum]", "should be a list of select"),
        ("x-guardrail: python, x-statements: [select]", "is allowed only for inputs with x-guardrail: sql"),
    ],
)
def test_a_mark_on_code_that_means_nothing_is_reported(tmp_path: Path, mark: str, words: str) -> None:
    """PX-10"""
    tools = CODE_TOOL.replace("MARK", mark)
    (message,) = [
        message
        for place, message in find(write_domain(tmp_path, {"tools.yaml": tools})).items()
        if place.endswith("input_schema.properties.cabin")
    ]
    assert words in message


@pytest.mark.parametrize(
    "module",
    [
        *(
            "os",
            "os.path",
            "subprocess.run",
            "builtins",
            "numpy",
            "_thread",
            "_socket",
            "operator",
            "functools",
        ),
        *("string", "tokenize", "argparse", "configparser", "filecmp", "grp", "antigravity", "zoneinfo"),
    ],
)
def test_an_import_that_no_domain_may_allow_is_reported(tmp_path: Path, module: str) -> None:
    """PX-10"""
    files = {"domain.yaml": f"guardrails:\n  allowed_imports: [math, {module}]\n"}
    (problem,) = check_domain(write_domain(tmp_path, files))
    assert "guardrails.allowed_imports.1" in str(problem)
    assert "only these standard library modules" in str(problem)


@for_each("name", ["no-such-domain", "travle", "a\nb", "", "/no/such/folder", "a\0b", "x" * 5000])
def test_a_domain_that_is_not_there_is_one_line(name: str) -> None:
    (problem,) = check_domain(name)
    assert problem.message.startswith("Unknown domain ")
    assert len(str(problem).splitlines()) == 1
    assert len(str(problem)) < 200


def test_a_file_is_no_domain(tmp_path: Path) -> None:
    path = tmp_path / "domain"
    path.write_text("text")
    assert "is not a folder" in check_domain(path)[0].message


def test_a_folder_without_ontology_is_one_problem(tmp_path: Path) -> None:
    (problem,) = check_domain(tmp_path)
    assert "has no ontology.yaml, which every domain needs" in problem.message


def test_a_dact_that_stands_twice_is_named_with_its_line(tmp_path: Path) -> None:
    """FS-5"""
    again = '  search_flights: {dax: "00F", intent: Read, outputs: [flight_id]}\n'
    problems = check_domain(write_domain(tmp_path, {"ontology.yaml": ONTOLOGY + again}))
    assert [str(problem) for problem in problems] == [
        "ontology.yaml:26: flows.search_flights: is a duplicate key"
    ]


def test_a_domain_has_at_most_64_flows(tmp_path: Path) -> None:
    """FS-5"""
    flows = "".join(f"  flow_{number}: {{intent: Read}}\n" for number in range(65))
    problems = find(write_domain(tmp_path, {"ontology.yaml": f"flows:\n{flows}"}))
    assert problems == {"ontology.yaml: flows": "there are 65 flows; a domain can have at most 64"}


def test_a_domain_has_at_most_four_slot_types_of_its_own(tmp_path: Path) -> None:
    """FS-4: including those from the library."""
    types = "slot_types:\n" + "".join(f'  own_{letter}: {{pattern: "{letter}"}}\n' for letter in "abcd")
    problems = find(write_domain(tmp_path, {"ontology.yaml": types + ONTOLOGY}))
    assert list(problems) == ["ontology.yaml: slot_types"]


def test_a_method_must_take_what_its_schema_names(tmp_path: Path) -> None:
    services = SERVICES.replace("**inputs", "*, day, seat, call")
    problems = check_domain(write_domain(tmp_path, {"services.py": services}))
    assert [problem.message for problem in problems] == [
        "Flights.book does not accept 'from', which input_schema declares",
        "Flights.book does not accept 'to', which input_schema declares",
        "Flights.book does not accept 'cabin', which input_schema declares",
        "Flights.book needs 'seat', which input_schema does not require",
    ]


def test_a_required_input_that_nothing_gives_is_named(tmp_path: Path) -> None:
    ontology = edit(ONTOLOGY, (", day: date", ""))
    problems = find(write_domain(tmp_path, {"ontology.yaml": ontology}))
    assert problems == {
        "ontology.yaml: flows.book_flight.tools.0.slot_mapping": (
            "nothing provides the required input 'day' of flight_book"
        )
    }


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ("bok_flight", "did you mean 'book_flight'?"),
        ("search_flights", "should name another flow"),
        ("book_flight", "needs `confirm: true`"),
    ],
)
def test_a_flow_changes_another_one_after_it_has_asked(tmp_path: Path, changes: str, words: str) -> None:
    """IR-4"""
    ontology = edit(ONTOLOGY, ("    intent: Read\n", f"    intent: Read\n    changes: {changes}\n"))
    found = find(write_domain(tmp_path, {"ontology.yaml": ontology}))
    assert words in found["ontology.yaml: flows.search_flights.changes"]


def test_loading_raises_with_every_problem(tmp_path: Path) -> None:
    """CO-5"""
    ontology = edit(ONTOLOGY, ("intent: Read", "intent: Raed"), ("intent: Transform", "intent: Tarnsform"))
    with pytest.raises(ConfigurationError) as caught:
        load_domain(write_domain(tmp_path, {"ontology.yaml": ontology}))
    assert len(caught.value.problems) == 2


def test_a_line_of_a_skill_counts_from_the_top_of_its_file(tmp_path: Path) -> None:
    (problem,) = check_domain(write_domain(tmp_path, skill("crietria: [a]")))
    assert str(problem).startswith(f"{SKILL}:4: crietria")


PROMPT = "---\nid: slot_fill\nversion: ours-2\npurpose: Ours\ndata: {}\n---\nFind values.\n"


def test_a_prompt_of_the_domain_is_part_of_its_configuration(tmp_path: Path) -> None:
    prompt = PROMPT.format("utterance, history, known, notes")
    folder = write_domain(tmp_path, {"prompts/slot_fill.md": prompt})
    assert load_domain(folder).domain.config.prompts == {"slot_fill.md": prompt}


def test_a_prompt_that_does_not_fit_is_a_mistake(tmp_path: Path) -> None:
    folder = write_domain(tmp_path, {"prompts/slot_fill.md": PROMPT.format("mood")})
    (problem,) = check_domain(folder)
    assert str(problem).startswith("prompts/slot_fill.md: may declare the settings slots, task, and the data")
