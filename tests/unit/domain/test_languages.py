"""Words of a language as data: their English equivalents, and words that stay unchanged (NL-10)."""

from pathlib import Path

from orchestrator.adapters.domains.folder import check_domain, load_domain
from orchestrator.domain.schema import LexiconFile
from orchestrator.nlu.text import Lexicon
from tests.cases import for_each

FILE = LexiconFile(
    patterns={r"(\d{1,2})\. (?=mai\b)": r"\1 "},
    words={
        "may": "mai",
        "tomorrow": "morgen",
        "in the morning": "am morgen | morgens",
        "new": "neu | nouveau",
    },
)


@for_each(
    ("said", "english"),
    [
        ("am 3. Mai", "am 3 may"),
        ("Morgen!", "tomorrow!"),
        ("fliegen wir am Morgen?", "fliegen wir in the morning?"),
        ("am Donnerstag", "am Donnerstag"),
        ("NEU, oder?", "new, oder?"),
        ("", ""),
        ("book it tomorrow am Morgen", "book it tomorrow in the morning"),
    ],
)
def test_the_longest_known_phrase_is_put_into_english(said: str, english: str) -> None:
    assert Lexicon([FILE]).to_english(said) == english


def test_a_domain_adds_its_words_to_those_of_the_language() -> None:
    travel = load_domain("travel").domain
    lexicon = Lexicon(travel.lexicons["de"])
    assert lexicon.to_english("Ich möchte einen Flug") == "I would like a flight"
    assert all(not file.words for file in travel.lexicon), "English needs none"
    assert Lexicon(travel.lexicon).to_english("Ich möchte einen Flug") == "Ich möchte einen Flug"


def test_english_is_the_same_when_it_is_put_into_english_again() -> None:
    """The second of two requests is translated again."""
    for files in load_domain("travel").domain.lexicons.values():
        lexicon = Lexicon(files)
        for english in (one for file in files for one in file.words if " " in one):
            assert lexicon.to_english(english) == english


def test_a_pattern_that_is_none_is_told_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "languages").mkdir()
    (tmp_path / "languages" / "nl.yaml").write_text("patterns: {'(uur': 'x'}\nword: {}\n")
    (tmp_path / "ontology.yaml").write_text("flows: {}\n")
    told = [str(problem) for problem in check_domain(tmp_path)]
    assert any("languages/nl.yaml:1" in one and "not a valid regular expression" in one for one in told), told
    assert any("languages/nl.yaml:2" in one and "word" in one for one in told), told
