from collections.abc import Iterable

import pytest

from taiwa import constraints
from taiwa.constraints import Vocabulary
from taiwa.kernel.errors import InputError, NoValidTokenError
from taiwa.kernel.messages import JsonSchema, Regex, Sampling
from taiwa.models.inprocess.decode_loop import DecodeJob, DecodeResult, decode, decode_batch
from tests.constraints.vocabularies import with_bytes
from tests.models.inprocess.stub_network import StubNetwork

MADE = with_bytes('{"', '":', ' "', "name", '{"name', "tea", "coffee", "END", "E", "ND of it")
PROMPT = MADE.encode("hello ")
SHAPE = JsonSchema(
    {
        "type": "object",
        "properties": {"name": {"enum": ["tea", "coffee"]}},
        "required": ["name"],
        "additionalProperties": False,
    }
)


def tokens(*texts: str) -> list[int]:
    return [MADE.tokens.index(text.encode()) for text in texts]


def job(source: object = None, *, whitespace: str = "compact", **given: object) -> DecodeJob:
    state = None if source is None else constraints.compile(source, MADE, whitespace=whitespace).start()
    return DecodeJob(given.pop("unread", PROMPT), MADE, given.pop("room", 60), state, **given)


def written(model: StubNetwork, what: DecodeJob) -> tuple[str, DecodeResult]:
    *pieces, ending = decode(model.start(), what)
    assert isinstance(ending, DecodeResult)
    return "".join(map(str, pieces)), ending


def test_what_must_come_is_not_asked_of_the_model() -> None:
    model = StubNetwork(MADE, tokens("coffee"), start=len(PROMPT) + len(MADE.encode('{"name":"')))

    text, ending = written(model, job(SHAPE))

    assert text == '{"name":"coffee"}'
    assert ending.finish == "stop"
    # One reading of the prompt with all that is certain behind it, one for the choice between two words or more.
    assert ending.passes == len(model.reads) < len(ending.tokens)
    assert sum(ending.forced) == len(ending.tokens) - ending.passes
    assert model.reads[0][0] > len(PROMPT)


def test_the_output_head_is_asked_for_what_may_come_only_where_that_is_little() -> None:
    model = StubNetwork(MADE)

    _, constrained = written(model, job(Regex("[ab]{4}")))

    assert constrained.sparse_passes == constrained.passes
    assert all(rows is not None and rows < 10 for _, rows in model.reads)


def test_a_text_without_constraint_ends_with_the_end_token_or_its_room() -> None:
    preferred = [*tokens("tea", "END"), MADE.end[0]]

    ended = written(StubNetwork(MADE, preferred, len(PROMPT)), job())
    full = written(StubNetwork(MADE, tokens("tea", "END", "tea"), len(PROMPT)), job(room=2))

    assert (ended[0], ended[1].finish) == ("teaEND", "stop")
    assert (full[0], full[1].finish, len(full[1].tokens)) == ("teaEND", "length", 2)


def test_a_stop_string_may_lie_across_tokens_and_ends_the_text_before_it() -> None:
    preferred = tokens("tea", "E", "ND of it", "tea")

    text, ending = written(StubNetwork(MADE, preferred, len(PROMPT)), job(stop=("END",)))

    assert (text, ending.finish, ending.stop, len(ending.tokens)) == ("tea", "stop", "END", 3)


def test_forced_tokens_stop_at_a_stop_string_and_at_the_end_of_the_room() -> None:
    text, ending = written(StubNetwork(MADE), job(SHAPE, stop=("name",)))
    short = written(StubNetwork(MADE), job(SHAPE, room=1))[1]

    assert (text, ending.stop, ending.passes) == ('{"', "name", 0)
    assert (short.finish, len(short.tokens)) == ("length", 1)


def test_drawing_repeats_with_its_seed_and_differs_without() -> None:
    def drawn(seed: int) -> str:
        return written(StubNetwork(MADE), job(Regex("[a-z]{12}"), sampling=Sampling(temperature=1.5, seed=seed)))[0]

    assert drawn(1) == drawn(1)
    assert len({drawn(seed) for seed in range(5)}) > 1


def test_closing_ends_the_writing_before_the_next_token() -> None:
    model = StubNetwork(MADE, tokens(*["tea"] * 9), len(PROMPT))
    pieces = decode(model.start(), job())

    assert next(pieces) == "tea"
    pieces.close()

    assert len(model.reads) == 1


def test_likelihoods_are_the_models_own_and_ask_it_at_every_place() -> None:
    _, plain = written(StubNetwork(MADE), job(SHAPE, top_logprobs=2))

    assert len(plain.logprobs) == len(plain.tokens) + (plain.passes > len(plain.tokens)) == plain.passes
    assert not any(plain.forced)
    for told in plain.logprobs:
        assert len(told.top_logprobs) == 2
        assert told.top_logprobs[0][1] >= told.top_logprobs[1][1] >= float("-inf")
        assert told.top_logprobs[0][1] >= told.logprob - 1e-6


def test_a_constraint_that_leaves_nothing_is_a_dead_end_with_its_place() -> None:
    few = Vocabulary((b"a", b"b", b"<end>"), 2)
    state = constraints.compile(Regex("a(bb|a[bc])"), few).start().advance(0).advance(0)

    text, _ = written(StubNetwork(few), DecodeJob((0,), few, 9, state))
    with pytest.raises((NoValidTokenError, InputError)):
        written(StubNetwork(few), DecodeJob((0,), few, 9, constraints.compile(Regex("ac"), few).start()))

    assert text == "b"


def test_texts_side_by_side_are_those_that_are_written_alone() -> None:
    jobs = [job(SHAPE, unread=PROMPT[-1:], sampling=Sampling(temperature=1.0, seed=seed)) for seed in range(3)] + [
        job(Regex("[ab]{2,9}"), unread=PROMPT[-1:])
    ]
    alone = [written(StubNetwork(MADE), each)[0] for each in _again(jobs)]
    bundle = StubNetwork(MADE).start().batch(len(jobs))

    said = [""] * len(jobs)
    endings: dict[int, DecodeResult] = {}
    for number, piece in decode_batch(bundle, jobs):
        if isinstance(piece, str):
            said[number] += piece
        else:
            endings[number] = piece

    assert said == alone
    assert sorted(endings) == [0, 1, 2, 3]
    assert bundle.widths == sorted(bundle.widths, reverse=True)


def _again(jobs: Iterable[DecodeJob]) -> list[DecodeJob]:
    """The same jobs with states of their own."""
    return [
        DecodeJob(e.unread, e.vocabulary, e.room, e.state and e.state.fork(), e.sampling, e.stop, e.top_logprobs)
        for e in jobs
    ]


def looping(period: int) -> StubNetwork:
    """A model that writes a few words, and then the same tokens again and again."""
    first, end = MADE.encode("so it begins: "), MADE.encode("teacoffee abc" * period)[:period]
    return StubNetwork(MADE, [*first, *end * 900], start=len(PROMPT), context=2_000)


@pytest.mark.parametrize("period", [1, 7, 60])
def test_an_answer_that_repeats_itself_without_end_is_ended(period: int) -> None:
    _, ending = written(looping(period), job(room=900))

    assert ending.finish == "repetition"
    assert len(ending.tokens) < 14 + 180 + 16


def test_a_repetition_that_ends_is_not_taken_for_an_endless_one() -> None:
    model = StubNetwork(MADE, [*MADE.encode("-" * 120), *MADE.end], start=len(PROMPT))

    text, ending = written(model, job(room=900))

    assert (text, ending.finish) == ("-" * 120, "stop")


def test_a_repetition_that_a_constraint_demands_is_written() -> None:
    text, ending = written(StubNetwork(MADE), job(Regex("(ab){200}"), room=900))

    assert (text, ending.finish) == ("ab" * 200, "stop")


def test_a_repetition_that_a_constraint_merely_allows_is_ended() -> None:
    _, ending = written(looping(2), job(Regex("so it begins: [a-z ]{1,2000}"), room=900))

    assert ending.finish == "repetition"


def counting(count: int, words: str) -> StubNetwork:
    """A model that writes the same words under numbers that count on."""
    tokens = [token for number in range(10, 10 + count) for token in MADE.encode(f"{number} {words} ")]
    return StubNetwork(MADE, [*tokens, *MADE.end], start=len(PROMPT), context=4_000)


def test_a_list_that_counts_on_with_the_same_words_is_ended() -> None:
    _, ending = written(counting(80, "stir the tea and pour it out"), job(room=3_000))

    assert ending.finish == "repetition"
    assert len(ending.tokens) < 1_000


@pytest.mark.parametrize("words", [",", "x"])
def test_numbers_in_a_row_are_no_repetition(words: str) -> None:
    _, ending = written(counting(80, words), job(room=3_000))

    assert ending.finish == "stop"
