"""The table that the runtime ships, and what the flows really send."""

import json

from taiwa.flows.askwords import BACK, MATERIAL, WHOLE
from taiwa.flows.reason import STEPS
from taiwa.models.builtin.reading.marks import mark
from training.builtin.known import FILE, known, written


def test_the_shipped_table_is_what_the_flows_say_now() -> None:
    assert FILE.read_text(encoding="utf-8") == written(), "run: python -m training.builtin.known"


def test_every_flow_has_its_task() -> None:
    tasks = known()
    assert json.loads(written()) == tasks
    for language, text in MATERIAL.items():
        assert tasks[mark(text)] == "assess"
        assert tasks[mark(f"{BACK[language]}\n\nReply only with JSON")] == "back"
        assert tasks[mark(WHOLE[language])] == "refused"
    assert tasks[mark(f"{STEPS}\n\nTools: …")] == "solve"
    assert list(tasks.values()).count("rewrite") == 6
