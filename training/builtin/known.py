"""What the runtime knows a request by: the first paragraphs that our flows send, as digests, and the task of each.

`refused` are requests of ours that the model cannot answer; their flows have another way, and are told so at once.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import taiwa.apps
from taiwa.apps.load import load
from taiwa.flows.answers import NAMED
from taiwa.flows.askturn import ADVICE
from taiwa.flows.askwords import BACK, EITHER, ONE, WHOLE
from taiwa.flows.cited import cite_request
from taiwa.flows.reason import STEPS
from taiwa.flows.rewrite import INSTRUCTIONS, SEVERAL, SINGLE
from taiwa.models.builtin.reading.marks import mark
from taiwa.operations.say import render_request

__all__ = ["FILE", "known", "written"]

FILE = Path(__file__).resolve().parents[2] / "src/taiwa/models/builtin/data/tasks.json"
DESK = Path(taiwa.apps.__file__).parent / "builtin" / "order.md"
"""The app whose replies the model writes."""
LANGUAGES = ("", "en", "ja", "zh")


def known() -> Mapping[str, str]:
    """Tasks by the digests of the first paragraphs that ask for them."""
    return {mark(text): task for text, task in _texts()}


def written() -> str:
    """The same as a file, always in the same order."""
    return json.dumps(dict(sorted(known().items())), indent=0) + "\n"


def _texts() -> Iterator[tuple[str, str]]:
    for language, questions in ONE.items():
        for name, (instructions, question) in questions.items():
            yield instructions, "assess"
            yield question, f"assess.{name}"
        yield BACK[language], "back"
        yield WHOLE[language], "refused"
        yield EITHER[language], "refused"
        for what, lines in (SINGLE[language], SEVERAL[language]):
            yield INSTRUCTIONS[language].format(what=what, lines=lines), "rewrite"
    for language in LANGUAGES:
        yield cite_request("", (), language)[0].text, "refused"
    yield ADVICE, "refused"
    yield STEPS, "solve"
    yield NAMED, "number"
    if DESK.exists():
        yield render_request(load(DESK), "…").messages[0].text, "desk"


if __name__ == "__main__":
    FILE.write_text(written(), encoding="utf-8")
