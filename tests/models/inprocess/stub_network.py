"""A model without a network: what it wants to say next follows from the tokens before, and it counts what it is asked."""

from collections.abc import Sequence

import numpy as np

from taiwa.constraints.vocabulary import Vocabulary


class StubNetwork:
    """Prefers the tokens of `preferred` one after the other from position `start` on; elsewhere logits come from a hash of the last two tokens."""

    def __init__(
        self, vocabulary: Vocabulary, preferred: Sequence[int] = (), start: int = 0, context: int = 1000
    ) -> None:
        self.vocabulary = vocabulary
        self.context = context
        self.piece = 128
        self.preferred = list(preferred)
        self.begin = start
        self.reads: list[tuple[int, int | None]] = []

    def start(self) -> "Told":
        return Told(self)

    def logits(self, tokens: Sequence[int]) -> np.ndarray:
        random = np.random.default_rng(list(tokens[-2:]))
        found = random.normal(size=len(self.vocabulary)).astype(np.float32)
        place = len(tokens) - self.begin
        if 0 <= place < len(self.preferred):
            found[self.preferred[place]] += 100
        return found


class Told:
    """A text that the stub has read."""

    def __init__(self, source: StubNetwork, tokens: Sequence[int] = ()) -> None:
        self.source = source
        self.tokens = list(tokens)

    def read(self, tokens: Sequence[int], rows: np.ndarray | None = None) -> np.ndarray:
        assert len(tokens) > 0
        self.tokens += tokens
        self.source.reads.append((len(tokens), None if rows is None else len(rows)))
        found = self.source.logits(self.tokens)
        return found if rows is None else found[rows]

    def rollback(self, count: int) -> None:
        assert 0 <= count <= len(self.tokens)
        self.tokens = self.tokens[: len(self.tokens) - count]

    def fork(self) -> "Told":
        return Told(self.source, self.tokens)

    def batch(self, count: int) -> "Side":
        return Side([self.fork() for _ in range(count)])


class Side:
    """Texts side by side."""

    def __init__(self, texts: list[Told]) -> None:
        self.texts = texts
        self.widths: list[int] = []

    def read(self, tokens: Sequence[Sequence[int]], rows: Sequence[np.ndarray | None]) -> list[np.ndarray]:
        assert len(tokens) == len(self.texts)
        self.widths.append(len(tokens))
        return [text.read(given, few) for text, given, few in zip(self.texts, tokens, rows, strict=True)]

    def select(self, indices: Sequence[int]) -> None:
        self.texts = [self.texts[place] for place in indices]
