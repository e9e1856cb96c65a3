"""One turn of a recorded dialogue, with all that is known of what should come of it."""

from collections.abc import Mapping, Sequence
from typing import cast

from taiwa.kernel.records import Json, value
from taiwa.kernel.values import Message, Passage, assistant, user
from taiwa.lab.evaluation.items import Item

__all__ = ["ReadSet", "Sample", "item_of", "sample_of"]

Said = tuple[tuple[str, str], ...]


@value
class Sample:
    """A dialogue up to the words of the user that are to be dealt with, by who said what: `user` or `assistant`.

    `ask`: whether people found that it must be asked back; None where nobody said. `rewrite` is what a person wrote instead of
    the last words. `relevant` names the passages that answer, `answers` are right answers in words, `answerable` says
    whether the documents hold one. `replies` are what the user said when asked back. `told` are passages that
    the dialogue itself has given already: what is looked up now is not among them.
    """

    id: str
    said: Said
    ask: bool | None = None
    rewrite: str = ""
    relevant: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    answerable: bool | None = None
    replies: tuple[str, ...] = ()
    told: tuple[str, ...] = ()

    @property
    def dialogue(self) -> tuple[Message, ...]:
        """The turns as messages."""
        return tuple((user if who == "user" else assistant)(words) for who, words in self.said)

    @property
    def last(self) -> str:
        """What the user said last."""
        return self.said[-1][1]

    @property
    def history(self) -> tuple[Message, ...]:
        """What was said before."""
        return self.dialogue[:-1]

    @property
    def given(self) -> tuple[str, ...]:
        """The passages that the dialogue has given already and that are not asked for again."""
        return tuple(name for name in self.told if name not in self.relevant)


@value
class ReadSet:
    """A file of dialogues: its name, the SHA-256 of its bytes, and the passages that it brings along, if any."""

    name: str
    format: str
    digest: str
    samples: tuple[Sample, ...]
    passages: tuple[Passage, ...] = ()
    notes: tuple[str, ...] = ()


def item_of(sample: Sample, kind: str, gold: str) -> Item:
    """What an evaluation is given of a sample; its id is one among all sets."""
    more: dict[str, Json] = {
        "id": sample.id, "said": [[who, words] for who, words in sample.said], "ask": sample.ask, "rewrite": sample.rewrite,
        "relevant": [*sample.relevant], "answers": [*sample.answers], "answerable": sample.answerable,
        "replies": [*sample.replies], "told": [*sample.told],
    }  # fmt: skip
    return Item(f"{kind}/{sample.id}", sample.last, gold, kind, more=more)


def sample_of(item: Item) -> Sample:
    """The sample that an item was made of."""
    more = cast("Mapping[str, object]", item.more)
    said = cast("Sequence[tuple[str, str]]", more["said"])
    texts = {name: tuple(cast("Sequence[str]", more[name])) for name in ("relevant", "answers", "replies", "told")}
    return Sample(
        str(more["id"]), tuple((who, words) for who, words in said), cast("bool | None", more["ask"]), str(more["rewrite"]),
        texts["relevant"], texts["answers"], cast("bool | None", more["answerable"]), texts["replies"], texts["told"],
    )  # fmt: skip
