"""What the built-in model says to what it did not learn: what it is for, and how a larger model is set.

The words are written by the program, not by the network. They stand in the form in which the flow reads a reply, so that a
conversation goes on and its state stays as it was.
"""

import json
import re

from taiwa.conversation.layout import DELTA_LINE, EARLIER, ENVIRONMENT, STATE
from taiwa.i18n import dialogue_catalogue, gettext_noop
from taiwa.kernel.records import Json
from taiwa.kernel.values import JsonSchema, Request, Text
from taiwa.models.builtin.reading.marks import spoken
from taiwa.models.builtin.reading.told import unsupported

__all__ = ["refusal"]

REFUSAL = gettext_noop(
    "I am the small model built into taiwa, and I was not trained to answer this. I solve problems about quantities and chemistry (taiwa solve), "
    "take orders at a caf\u00e9 (taiwa chat order), and judge what a question to documents lacks (taiwa ask). "
    "For everything else, set a larger model: taiwa config set model NAME, or -m NAME; `taiwa models` lists them."
)
KANA = re.compile(r"[\u3041-\u30ff]")
HAN = re.compile(r"[\u4e00-\u9fff]")
LATIN = re.compile(r"[A-Za-z]{2,}")
LOOKED_AT = 4_000
ANSWERED = frozenset(("answer", "delta"))
"""The keys of a reply that is one JSON object."""


def refusal(request: Request) -> str:
    """The reply to a request that the model cannot read.

    Raises:
        UnsupportedError: the request wants something else than words of a reply.
    """
    last = request.messages[-1] if request.messages else None
    if last is None or request.tools or request.likeliest or last.role != "user":
        raise unsupported()
    said = spoken(last)
    words = dialogue_catalogue(_language(said))(REFUSAL)
    if request.constraint is not None:
        if _is_reply(request):
            return json.dumps({"answer": words, "delta": {}}, ensure_ascii=False)
        raise unsupported()
    if said.startswith(EARLIER[0]):  # a summary is asked for, and these words are none
        raise unsupported()
    seen = next((part.text for part in last.parts if isinstance(part, Text) and part.transient), "")
    if seen.startswith(ENVIRONMENT[0]):
        return _environment(seen, words)
    return f"{words}\n{DELTA_LINE}\n{{}}" if seen.startswith(STATE[0]) else words


def _language(text: str) -> str:
    """The language that is answered in.

    >>> _language("東京の天気は?"), _language("北京的天气怎么样"), _language("Who wrote 源氏物語?")
    ('ja', 'zh', 'en')
    """
    near = text[-LOOKED_AT:]
    if KANA.search(near):
        return "ja"
    return "zh" if len(HAN.findall(near)) > 3 * len(LATIN.findall(near)) else "en"


def _is_reply(request: Request) -> bool:
    """Whether the constraint is the form of a reply with an answer and what it changes."""
    held = request.constraint
    properties = held.schema.get("properties") if isinstance(held, JsonSchema) else None
    return isinstance(properties, dict) and properties.keys() == ANSWERED


def _environment(seen: str, words: str) -> str:
    """The environment as it was, with the words as its response."""
    inner = seen.removeprefix(ENVIRONMENT[0]).strip().removesuffix(ENVIRONMENT[1])
    try:
        held: Json = json.loads(inner)
    except (ValueError, RecursionError):
        held = None
    whole = {**held, "response": words} if isinstance(held, dict) else {"response": words}
    return f"{ENVIRONMENT[0]}\n{json.dumps(whole, ensure_ascii=False)}\n{ENVIRONMENT[1]}"
