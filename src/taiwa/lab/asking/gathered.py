"""What a format makes of the rows of a file, and what several formats share."""

import re
from collections.abc import Iterable, Iterator, Sequence

from taiwa.kernel.records import value
from taiwa.kernel.values import Passage
from taiwa.lab.asking.sample import Sample
from taiwa.retrieval.readers import split_into_chunks
from taiwa.retrieval.types import ParsedDocument

__all__ = ["Gathered", "asks", "exchanged", "marked", "once", "piece", "pieces", "turned"]

MARK = re.compile(r"\|(user|agent|assistant)\|:")
ASKING = re.compile(r"[?？]\s*$|(?:か|かね|かしら)。\s*$")


@value
class Gathered:
    """Samples, the passages that the file brings along, and what a reader of figures should know of them."""

    samples: tuple[Sample, ...]
    passages: tuple[Passage, ...] = ()
    notes: tuple[str, ...] = ()


def piece(name: str, text: str, title: str = "", heading: tuple[str, ...] = ()) -> Passage:
    """A passage that is a document of its own."""
    return Passage(name, text, title=title, heading=heading, id=name)


def pieces(name: str, text: str) -> tuple[Passage, ...]:
    """A document, cut as an index cuts it."""
    return tuple(piece(f"{name}#{each.start}", each.text) for each in split_into_chunks(ParsedDocument(text)))


def once(passages: Iterable[Passage]) -> tuple[Passage, ...]:
    """Passages by their ids, each once."""
    return tuple({passage.id: passage for passage in passages}.values())


def turned(pairs: Sequence[tuple[str, str]], last: str) -> tuple[tuple[str, str], ...]:
    """Questions with their answers and a last question, as turns; an empty answer is no turn."""
    before = [
        turn for question, answer in pairs for turn in (("user", question), ("assistant", answer)) if turn[1].strip()
    ]
    return (*before, ("user", last))


def exchanged(turns: Iterable[tuple[str, str]], users: frozenset[str]) -> tuple[tuple[str, str], ...]:
    """Turns by who spoke, where whoever is no user is the assistant."""
    return tuple(("user" if who in users else "assistant", words) for who, words in turns if words.strip())


def marked(text: str) -> Iterator[tuple[str, str]]:
    """Turns of a text that marks who speaks, as `|user|: …`; a text without a mark is one turn of the user.

    >>> list(marked("|user|: A leave?\\n|user|: Which one?"))
    [('user', 'A leave?'), ('user', 'Which one?')]
    """
    places = [*MARK.finditer(text)]
    if not places:
        yield "user", text.strip()
    for mark, following in zip(places, [*places[1:], None], strict=True):
        yield mark[1], text[mark.end() : None if following is None else following.start()].strip()


def asks(text: str) -> bool:
    """Whether any line of what an operator says ends as a question.

    >>> asks("かしこまりました。ご予算はいかがでしょうか?"), asks("こちらの宿がございます。")
    (True, False)
    """
    return any(ASKING.search(line) for line in text.splitlines())
