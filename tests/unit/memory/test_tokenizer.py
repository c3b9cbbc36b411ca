from orchestrator.memory.tokenizer import count_tokens


def test_tokens_are_counted_by_bytes() -> None:
    assert [count_tokens(text) for text in ("", "a", "four" * 50, "語" * 100)] == [0, 1, 50, 75]
