"""Every law of conversations holds with any app."""

from hypothesis import given, settings
from hypothesis import strategies as st

from taiwa.conversation.app import App
from tests.laws.properties import conversation_laws, field_laws
from tests.strategies import apps


@settings(max_examples=25)
@given(apps(), st.data())
def test_conversations_with_any_app_keep_every_law(app: App, choices: st.DataObject) -> None:
    for law in conversation_laws(app):
        law.holds(*choices.draw(law.examples, label=law.name))


@settings(max_examples=25)
@given(apps(), st.data())
def test_the_reducers_of_any_app_keep_every_law(app: App, choices: st.DataObject) -> None:
    for field in app.model_fields:
        for law in field_laws(field, app.name):
            law.holds(*choices.draw(law.examples, label=law.name))
