from taiwa.models.inprocess.generator import PrefixCache
from tests.constraints.vocabularies import with_bytes
from tests.models.inprocess.stub_network import StubNetwork

MADE = with_bytes("say ", "what ", "12", "123", "tea", "<<calc: ", ">>", ">>\n", "te", "ea")
PROMPT = MADE.encode("say what you know of tea: ")


def ids(*texts: str) -> list[int]:
    return [MADE.tokens.index(text.encode()) for text in texts]


def shelf(**given: int) -> tuple[PrefixCache, StubNetwork]:
    source = StubNetwork(MADE, **given)
    return PrefixCache(source, MADE.encode), source


def test_a_request_that_begins_alike_goes_on_from_what_was_read() -> None:
    kept, _ = shelf()
    first = kept.take(PROMPT, "")
    first.sequence.read(first.unread)
    kept.put_back(first.sequence, PROMPT)

    longer = (*PROMPT, *ids("tea", "12"))
    second = kept.take(longer, "")

    assert (first.reused, second.reused) == (0, len(PROMPT))
    assert second.sequence is first.sequence
    assert second.unread == tuple(ids("tea", "12"))


def test_the_last_token_is_always_read_again() -> None:
    kept, _ = shelf()
    first = kept.take(PROMPT, "")
    first.sequence.read(first.unread)
    kept.put_back(first.sequence, PROMPT)

    again = kept.take(PROMPT, "")

    assert again.unread == PROMPT[-1:]
    assert again.sequence.tokens == list(PROMPT[:-1])


def test_behind_an_interruption_only_the_result_is_read_and_a_border_that_moved() -> None:
    kept, _ = shelf()
    opened = kept.take(PROMPT, "")
    drawn = ids("te", "a", "<<calc: ", "12", ">>")  # "te" and "a" are not how the tokenizer would divide "tea"
    opened.sequence.read((*opened.unread, *drawn))
    kept.put_back(opened.sequence, PROMPT)

    again = kept.take(PROMPT, "tea<<calc: 12>> = 144")

    assert list(again.answer[:5]) == drawn
    assert MADE.decode(again.answer) == b"tea<<calc: 12>> = 144"
    assert again.reused == len(PROMPT) + 5


def test_a_token_that_says_more_than_the_prefix_is_taken_back() -> None:
    kept, _ = shelf()
    opened = kept.take(PROMPT, "")
    opened.sequence.read((*opened.unread, *ids("<<calc: ", "12", ">>\n")))
    kept.put_back(opened.sequence, PROMPT)

    grown = kept.take(PROMPT, "<<calc: 123")

    assert list(grown.answer) == ids("<<calc: ", "123")
    assert grown.sequence.tokens == [*PROMPT, *ids("<<calc: ")]


def test_another_conversation_leaves_the_first_one_as_it_is() -> None:
    kept, _ = shelf()
    opened = kept.take(PROMPT, "")
    opened.sequence.read((*opened.unread, *ids(*["tea"] * 60)))
    kept.put_back(opened.sequence, PROMPT)

    other = kept.take((*PROMPT, *ids("12", "12")), "")
    first = kept.take((*PROMPT, *ids(*["tea"] * 60, "12")), "")

    assert other.reused == len(PROMPT)
    assert first.reused == len(PROMPT) + 60


def test_no_more_is_kept_than_fits_one_text() -> None:
    kept, source = shelf(context=100)
    for number in range(5):
        opened = kept.take(tuple(MADE.encode(f"{number}" * 40)), "")
        opened.sequence.read(opened.unread)
        kept.put_back(opened.sequence, opened.prompt)

    assert kept.take(tuple(MADE.encode("0" * 40)), "").reused == 0
    assert kept.take(tuple(MADE.encode("4" * 40)), "").reused > 0
    assert source.context == 100
