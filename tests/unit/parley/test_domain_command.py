"""`parley domain new` creates a domain without mistakes, and `domain check` reports every mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from parley.main import run


@pytest.fixture
def garden(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """Return the folder of a new domain."""
    assert run(["domain", "new", "garden", "--into", str(tmp_path)]) == 0
    capsys.readouterr()
    return tmp_path / "garden"


def test_a_new_domain_is_in_order(garden: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "NAME" not in (garden / "domain.yaml").read_text()
    assert run(["domain", "check", str(garden)]) == 0
    printed = capsys.readouterr()
    assert "note_create" in printed.out
    assert "is valid" in printed.err


def test_what_each_flow_may_do_is_shown_with_its_tags(
    garden: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """PX-3, PX-8: with the tags of all tools of a flow."""
    tools = garden / "tools.yaml"
    text = tools.read_text()
    everything = "[accesses_private_data, receives_untrusted_input, communicates_externally]"
    assert "tags: [accesses_private_data]" in text
    tools.write_text(text.replace("[accesses_private_data]", everything, 1))

    assert run(["domain", "check", str(garden)]) == 0

    header, _, *rows = [line.strip() for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert header.split()[0] == "flow"
    (adding,) = [row for row in rows if row.startswith("add_note")]
    assert "accesses private data, receives untrusted input, communicates externally" in adding
    assert adding.rstrip().endswith("needed")
    assert "required" in adding
    (listing,) = [row for row in rows if "note_list" in row]
    assert "accesses private data" in listing
    assert "untrusted" not in listing
    assert "needed" not in listing


def test_a_language_without_sentences_is_a_hint(garden: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = garden / "domain.yaml"
    hints: dict[str, list[str]] = {}
    for code in ("de", "fr"):
        config.write_text(f"language: {{default: {code}, supported: [{code}]}}\n")
        capsys.readouterr()

        assert run(["domain", "check", str(garden)]) == 0

        said = capsys.readouterr().err.splitlines()
        hints[code] = [line for line in said if "language.default" in line]

    assert hints["de"] == []
    assert len(hints["fr"]) == 1
    assert "'fr'" in hints["fr"][0]


def test_what_is_seldom_meant_is_a_hint(garden: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A time without a part of the day, a side effect without compensation, an output that no tool declares."""
    for file, right, wrong in [
        ("ontology.yaml", "type: free_text", "type: time"),
        ("tools.yaml", "idempotent: true", "idempotent: false"),
        ("templates/add_note.md.j2", "", "{{ data.boddy }}"),
    ]:
        path = garden / file
        path.write_text(path.read_text().replace(right, wrong, 1))

    assert run(["domain", "check", str(garden)]) == 0

    hints = [line for line in capsys.readouterr().err.splitlines() if line.startswith("Hint: ")]
    assert [hint.split(": ")[1] for hint in hints] == [
        "ontology.yaml",
        "tools.yaml",
        "templates/add_note.md.j2",
    ]
    assert "flows.add_note.slots.body" in hints[0]
    assert "note_create" in hints[1]
    assert "did you mean 'body'?" in hints[2]


def test_a_template_that_fails_with_sample_values_is_a_mistake(
    garden: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The report has its line: a text cannot be divided, and a topic is a text."""
    template = garden / "templates" / "add_note.md.j2"
    template.write_text("Noted.\n{% if slots.body %}\nHalf of it: {{ data.topic / 2 }}\n{% endif %}\n")

    assert run(["domain", "check", str(garden)]) == 1

    printed = capsys.readouterr()
    assert "templates/add_note.md.j2: line 3: fails with sample values (unsupported operand" in printed.out
    assert "test or convert the value" in printed.out


def test_a_name_that_the_sample_values_lack_is_a_hint(
    garden: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Including confirmations and rows of a result. An object without declared properties can have any name."""
    (garden / "templates" / "add_note.confirm.md.j2").write_text("Note {{ shown.bodi }}?")
    rows = "{% for one in data.notes %}{{ one.anything }} {{ one.tags.first }}{% endfor %}"
    (garden / "templates" / "list_notes.md.j2").write_text(rows)
    tools = garden / "tools.yaml"
    tools.write_text(
        tools.read_text().replace(
            "items: {type: object}", "items: {type: object, properties: {tags: {type: object}}}"
        )
    )

    assert run(["domain", "check", str(garden)]) == 0

    hints = [line for line in capsys.readouterr().err.splitlines() if "templates/" in line]
    missing = "'dict object' has no attribute {!r}; correct the name or declare the output"
    assert hints == [
        f"Hint: templates/add_note.confirm.md.j2: line 1: {missing.format('bodi')}",
        f"Hint: templates/list_notes.md.j2: line 1: {missing.format('anything')}",
    ]


@pytest.mark.parametrize("domain", ["travel", "analytics"])
def test_the_shipped_templates_render(domain: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["domain", "check", domain]) == 0
    assert "templates/" not in capsys.readouterr().err


def test_every_mistake_is_named_on_a_line_of_its_own(
    garden: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ontology = garden / "ontology.yaml"
    text = ontology.read_text()
    for right, wrong in [
        ("type: free_text", "type: poem"),
        ("intent: Look", "intent: Gaze"),
        ("tool_id: note_list", "tool_id: note_lost"),
        ("intent: Keep", "intent: Keep\n    dax: zzz"),
        ("confirm: true", "confrim: true"),
    ]:
        assert right in text
        text = text.replace(right, wrong)
    ontology.write_text(text)

    assert run(["domain", "check", str(garden)]) == 1

    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    for wrong in ("poem", "Gaze", "note_lost", "zzz", "confrim"):
        assert [line for line in lines if wrong in line], wrong
    assert all(line.startswith("ontology.yaml") for line in lines)
    assert f"{len(lines)} mistakes" in printed.err

    assert run(["chat", "--domain", str(garden)]) == 1
    assert "parley domain check" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["Garden", "../garden", "my-garden", ""])
def test_a_bad_name_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert run(["domain", "new", name, "--into", str(tmp_path)]) == 1
    assert "lowercase letters" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_exists_is_not_touched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "garden").mkdir()
    assert run(["domain", "new", "garden", "--into", str(tmp_path)]) == 1
    assert "already exists" in capsys.readouterr().err
    assert list((tmp_path / "garden").iterdir()) == []


def test_a_domain_is_trained_ahead(
    garden: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """RT-21: processes need no training at startup if their image has the models."""
    monkeypatch.delenv("PARLEY_TRAINED_FOLDER", raising=False)
    assert run(["domain", "train", str(garden)]) != 0
    assert "PARLEY_TRAINED_FOLDER" in capsys.readouterr().err

    assert run(["domain", "train", str(garden), "--into", str(tmp_path / "trained")]) == 0
    made = sorted(path.name for path in (tmp_path / "trained").iterdir())
    assert len(made) == 1

    monkeypatch.setenv("PARLEY_TRAINED_FOLDER", str(tmp_path / "again"))
    assert run(["domain", "train", str(garden)]) == 0
    assert sorted(path.name for path in (tmp_path / "again").iterdir()) == made
