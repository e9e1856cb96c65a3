"""A model in this process that writes one answer, letter by letter: for what needs tokens, masks and probabilities."""

from collections.abc import Sequence
from typing import cast

import numpy as np

from taiwa.constraints.vocabulary import Vocabulary
from taiwa.kernel.messages import Capability, Request
from taiwa.models.http_api.capabilities import Capabilities
from taiwa.models.inprocess.chat_template import ChatTemplate, Tokenizer
from taiwa.models.inprocess.generator import InProcessModel, LoadedModel
from tests.models.inprocess.stub_network import StubNetwork

ABLE: frozenset[Capability] = frozenset({"stop", "prefix", "json_schema", "regex", "grammar", "logprobs", "seed"})
BYTES = Vocabulary.of_bytes()
END = 256
READABLE = np.array([32 <= token < 127 or token == END for token in range(len(BYTES))])


class Letters(StubNetwork):
    """A stub whose likely tokens are letters, so that every one of them is a text."""

    def logits(self, tokens: Sequence[int]) -> np.ndarray:
        return super().logits(tokens) + np.where(READABLE, 0, -50).astype(np.float32)


class StubLoaded(LoadedModel[Letters]):
    """The network, which prefers the answer after any prompt."""

    def prepare(self, request: Request) -> tuple[int, ...]:
        prompt = BYTES.encode("\n".join(message.text for message in request.messages))
        self.network.begin = len(prompt)
        return prompt


class StubModel(InProcessModel[StubLoaded]):
    """Writes one answer to every request, as far as its constraint allows it."""

    def __init__(self, answer: str, name: str = "stub") -> None:
        super().__init__(name, Capabilities(ABLE))
        self.answer = answer

    def load(self) -> StubLoaded:
        network = Letters(BYTES, (*BYTES.encode(self.answer), END), context=50_000)
        encode = cast("Tokenizer", BYTES.encode)
        return StubLoaded(network, encode, ChatTemplate(lambda _: "", encode))
