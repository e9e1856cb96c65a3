"""Replies of the app `order`, as a model writes them."""

import json

from taiwa.kernel.messages import Request
from taiwa.models.scripted import ScriptedModel, function_model


def ordered(text: str, /, **lines: tuple[int, str] | None) -> str:
    """Write a reply that changes lines of the order: `ordered("2 teas.", _1=(2, "tea"))`."""
    items = {
        name.removeprefix("_"): None if line is None else {"name": line[1], "quantity": line[0], "options": []}
        for name, line in lines.items()
    }
    return f"{text}\n@@delta\n{json.dumps({'items': items})}"


TEAS = ordered("2 green teas. Anything else?", _1=(2, "green tea"))


REPLIES = {
    "Two green teas, please.": TEAS,
    "And a lemonade.": ordered("1 lemonade. Anything else?", _2=(1, "lemonade")),
    "Three lemonades, please.": ordered("3 lemonades. Anything else?", _1=(3, "lemonade")),
}


def order_model() -> ScriptedModel:
    """Return a model that knows a few orders."""

    def reply(request: Request) -> str:
        (said,) = (each for each in REPLIES if each in request.messages[-1].text)
        return REPLIES[said]

    return function_model(reply, name="scripted", capabilities=frozenset())
