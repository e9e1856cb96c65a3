"""The replies of a model to orders as in the shipped package: with the parsed user text and the calculator."""

import json
from dataclasses import replace

from taiwa.apps.catalog import load_app
from taiwa.conversation.history import add_turn, begin
from taiwa.conversation.turn_prompt import turn_request
from taiwa.kernel.messages import StreamEnd, TextDelta
from taiwa.models.builtin.line_check import CALL_END
from taiwa.models.builtin.model import BuiltinModel
from taiwa.models.builtin.order_app import Order
from taiwa.models.builtin.order_reply import Reply, write_delta
from taiwa.models.builtin.prompts import read_request
from taiwa.tools.calculator import calculator
from training.builtin.desk.prompts import read_prompt
from training.builtin.samples import Sample

__all__ = ["Desk"]


class Desk:
    """The order app with a given model."""

    def __init__(self, model: BuiltinModel) -> None:
        self._model = model
        self._app = load_app("order")

    def written(self, sample: Sample) -> str | None:
        """Return the reply to the prompt of a sample, or None if the prompt cannot be rebuilt."""
        found = read_prompt(sample.prompt)
        if found is None:
            return None
        order, asked, said = found
        conversation = begin(self._app)
        if asked or order != Order():
            state = json.loads(
                write_delta(order, Reply(status=order.status), {line.number: line for line in order.lines})
            )
            conversation = add_turn(conversation, "x", asked, state)
        request = replace(turn_request(conversation, said), stop=(CALL_END,))
        prompt = read_request(request)
        if prompt is None or prompt.text != sample.prompt:
            return None
        text = ""
        while True:
            *chunks, end = self._model.stream(replace(request, prefix=text))
            text += "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta))
            if not isinstance(end, StreamEnd) or end.stop != CALL_END:
                return text
            text += f"{CALL_END} {calculator(text.rpartition(': ')[2]).text}"
