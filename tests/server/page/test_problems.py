"""What the page says about input that cannot be used, in its language."""

import re
from collections.abc import AsyncGenerator, Callable
from typing import Any, TypeAlias

import httpx
import pytest

from taiwa.conversation.replies import ParsedReply
from taiwa.flows.turn import _warnings
from taiwa.i18n import translated
from taiwa.kernel.messages import Notice, Request, Response, assistant
from taiwa.kernel.wording import Wording
from taiwa.models.scripted import ALL_CAPABILITIES, scripted_model
from tests.orders import TEAS
from tests.server.page.conftest import OpenTab, Serve
from tests.server.page.tab import GatedModel
from tests.server.serving import Serving, serving

Send: TypeAlias = Callable[[httpx.Client, str], httpx.Response]
CHINESE = re.compile(r"[\u3040-\u9fff]")
KEPT = re.compile(
    r"'[^']*'|`[^`]*`|\"[^\"]*\"|https?://\S+|[\w.]+\.[a-z_]+\b|\b(?:JSON|Schema|TypeScript|PNG|JPEG|WebP|GIF|PDF|DOCX|UTF-8|MB|MODEL|logprobs|integer|max_cost|unclosed character class)\b"
)
"""Names, values, and words of other libraries."""
HEADER = '{"taiwa": "conversation", "format": 1, "name": "talk", "tip": "0123456789abcdef0123456789abcdef"}'


def create(**body: Any) -> Send:
    return lambda client, _: client.post("/api/conversations", json={"app": "plain", "text": "hello"} | body)


def post(path: str, /, **body: Any) -> Send:
    return lambda client, name: client.post(path.replace("NAME", name), json=body)


def upload(index: str, *names: str) -> Send:
    files = [("files", (name, b"tea")) for name in names]
    return lambda client, _: client.post(f"/api/indexes/{index}/documents", files=files)


@pytest.mark.parametrize(
    "send",
    [
        create(text=" "),
        create(text="x" * 2_000_001),
        create(options={"type": "os:system"}),
        create(options={"type": "name, age foo"}),
        create(options={"regex": "[0-9"}),
        create(options={"grammar": "one: two"}),
        create(options={"regex": "[0-9]+", "tools": ["calculator"]}),
        create(options={"temperature": 5}),
        create(app="ask", params={"max_questions": -1}),
        create(app="translate", params={}),
        create(attachments=[{"name": "tea.exe", "data": "AAAA"}]),
        create(model="nope"),
        create(app="nope"),
        post("/api/conversations/NAME/redo"),
        post("/api/conversations/NAME/rename", name="two words"),
        post("/api/conversations/NAME/fork", node="NAME", name="NAME"),
        post("/api/conversations/NAME/fork", node="nowhere", name="new"),
        post("/api/conversations/NAME/label", tags=["a,b"]),
        post("/api/conversations/NAME/label", tags=[str(n) for n in range(99)]),
        post("/api/conversations/NAME/state", path="items.1.quantity", value="many"),
        post("/api/conversations/NAME/state", path="nothing", value=1),
        post("/api/conversations/NAME/resume"),
        post("/page/limits", max_cost="much"),
        post("/page/limits", max_cost="5/week"),
        post("/page/limits", max_cost="-5"),
        post("/page/keys", server="nobody", key="abc"),
        post("/page/keys", server="openai", key="a b"),
        post("/page/keys", server="http://", key="abc"),
        post("/page/models", model="gguf:/nowhere.gguf"),
        post("/api/persons/tea", facts={"x": "y" * 600}),
        post("/api/persons/tea", facts={str(n): "y" for n in range(99)}),
        post("/api/import", text=" "),
        post("/api/import", text="hello"),
        post("/api/import", text=HEADER),
        post("/api/import", text=f"{HEADER}\n?"),
        post("/api/import", text=f'{HEADER}\n{{"blob": "0", "base64": "dGVh"}}'),
        post("/api/import", text='{"messages": []}'),
        post("/api/import", text='[{"mapping": {}}]'),
        post("/api/import", text='[{"messages": [1]}, {"messages": [1]}]'),
        post("/api/import", text='[{"role": "usr"}]'),
        post("/api/import", text='[{"role": "user", "content": 7}]'),
        post("/api/import", text='[{"role": "user", "content": "x"}]'),
        upload("a%40b", "tea.md"),
        upload("teas", "tea.exe"),
        upload("teas", "../tea.md"),
        upload("teas", ".tea.md"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("language", ["ja", "zh"])
def test_input_that_cannot_be_used_is_told_in_the_language_of_the_page(
    ordering: Serving, send: Send, language: str
) -> None:
    headers = {"taiwa-page": "1", "accept-language": language}
    with httpx.Client(base_url=ordering.server.url, headers=dict(ordering.client.headers) | headers) as client:
        answer = send(client, "order-1")
    assert 400 <= answer.status_code < 500
    message = answer.json()["error"]["message"]
    assert CHINESE.search(message)
    assert not re.search(r"[a-z]{3,} [a-z]{3,} [a-z]{2,}", KEPT.sub("", message)), message

    english = send(ordering.client, "order-1").json()["error"]["message"]
    assert not CHINESE.search(english)


@pytest.fixture(scope="module")
def ordering() -> Any:
    """A server with an order, whose owner is the caller."""
    model = scripted_model(TEAS, capabilities=ALL_CAPABILITIES)
    with serving(model=model) as server:
        run = server.client.post("/api/conversations", json={"app": "order", "text": "Two teas."}).json()["run"]
        assert "event: end" in server.client.get(f"/api/runs/{run}/events").text
        yield server


class SlowModel(GatedModel):
    """Says what it does before it answers."""

    async def astream(self, request: Request) -> AsyncGenerator[Any]:
        yield Notice(Wording("reading the prompt: {part}", part="37%"), code="waiting")
        async for each in super().astream(request):
            yield each


def test_what_a_model_does_before_it_answers_is_told_in_the_language_of_the_page(
    open_tab: OpenTab, serve: Serve
) -> None:
    model = SlowModel(rest="")
    model._begin = ()
    tab = open_tab(serve(model), locale="ja-JP")
    tab.begin_only("one")
    tab.has("#live .thinking", "プロンプトを読んでいます: 37%", ready=False)
    model.gate.set()


def test_the_warnings_of_a_turn_are_told_in_the_language_of_the_page() -> None:
    for parsed in (ParsedReply("", None, ("$.topics = 3: must be a list",)), ParsedReply("", None, missing=True)):
        for warning in _warnings(Response(assistant("")), parsed):
            assert CHINESE.search(translated(warning, "zh") or ""), warning
