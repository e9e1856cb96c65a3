"""Images of the results of tools on the page."""

import taiwa
from taiwa import tool
from taiwa.apps.catalog import load_text
from taiwa.kernel.attachments import Attachment
from taiwa.kernel.messages import Message, Response, ToolCall
from taiwa.models.scripted import scripted_model
from tests.files import PNG
from tests.server.serving import serving

SCREEN = Attachment.from_bytes(PNG, "screen.png")


@tool
def shoot() -> Attachment:
    """Take a picture of the screen."""
    return SCREEN


def test_the_image_of_a_result_is_shown_with_its_call_and_served() -> None:
    call = Response(Message("assistant", (ToolCall("shoot", "{}", "a"),)), "tool_calls")
    model = scripted_model(call, "It is red.", capabilities=frozenset({"tools"}))
    app = load_text("---\ntaiwa: 1\ntools: [shoot]\n---\nLook.\n", "eyes.md", "repository")
    with serving() as served:
        options = taiwa.TurnOptions(tools=(shoot,))
        taiwa.open(app, model=model, store=served.repository.store, session="t", options=options).say("What colour?")

        shown = served.client.get("/c/t").text
        image = served.client.get(f"/page/files/{SCREEN.sha256}")

    assert f'<img src="/page/files/{SCREEN.sha256}"' in shown
    assert (image.content, image.headers["content-type"]) == (PNG, "image/png")
