"""User profiles in a store: learning from feedback, and texts of earlier sessions."""

from collections.abc import Iterator

import pytest

from taiwa.flows.ask.clarify_then_retrieve import ClarifyOptions, clarify
from taiwa.flows.ask.types import Feedback, SearchEarlierSessions, Thresholds, UserProfile
from taiwa.kernel.errors import CorruptError, InputError
from taiwa.kernel.messages import Passage, user
from taiwa.kernel.runtime import Runtime
from taiwa.models.scripted import scripted_model
from taiwa.retrieval import InMemoryRetriever
from taiwa.sessions.users import UserProfiles
from taiwa.store import Store
from tests.flows.ask.scored import written
from tests.store.turns import begin

ANN = UserProfile("ann", (("office", "Osaka"),), "ja", Thresholds(eagerness=0.7))


@pytest.fixture
def store() -> Iterator[Store]:
    with Store.open(":memory:") as opened:
        yield opened


def test_a_profile_has_what_was_learned_from_feedback(store: Store) -> None:
    people = UserProfiles(store)
    people.put(ANN)

    after = people.add_feedback("ann", Feedback("should_not_have_asked", True))

    assert after == people.get("ann")
    assert after.tolerance.mean < 0.5
    assert after.facts == ANN.facts
    store.users.clear_feedback("ann")
    assert people.get("ann") == ANN


def test_learned_values_are_not_stored_twice(store: Store) -> None:
    people = UserProfiles(store)
    people.put(ANN)
    people.put(people.add_feedback("ann", Feedback("good", True)))

    assert people.get("ann").tolerance.welcome == 3


def test_an_unknown_user_is_reported_with_the_known_ones(store: Store) -> None:
    UserProfiles(store).put(ANN)

    assert not UserProfiles(store).has("bob")
    with pytest.raises(InputError, match="users: ann"):
        UserProfiles(store).get("bob")


def test_a_record_that_is_not_a_profile_is_corruption(store: Store) -> None:
    store.users.put("ann", {"~": "text", "text": "x"})

    with pytest.raises(CorruptError, match="holds a Text where a UserProfile"):
        UserProfiles(store).get("ann")


def test_only_the_texts_of_the_same_user_are_found(store: Store) -> None:
    people = UserProfiles(store)
    begin(store, "mine", "看護休暇は何日ありますか", "a room in Osaka", "child nursing leave in Osaka")
    begin(store, "theirs", "nursing leave secrets of Osaka")
    for name, session in (("ann", "mine"), ("bob", "theirs")):
        people.put(UserProfile(name))
        store.users.assign_session(session, name)

    english = people.recall(SearchEarlierSessions("ann", "How long is nursing leave in Osaka?"))
    japanese = people.recall(SearchEarlierSessions("ann", "看護休暇を取りたい"))

    assert [each.text for each in english] == ["child nursing leave in Osaka", "a room in Osaka"]
    assert {each.session for each in english} == {"mine"}
    assert [each.text for each in japanese] == ["看護休暇は何日ありますか"]
    assert people.recall(SearchEarlierSessions("ann", "nursing Osaka", 1))[0].text == "child nursing leave in Osaka"


@pytest.mark.parametrize("text", ["", "?!", "how are you", "zebra"])
def test_without_shared_words_nothing_is_recalled(store: Store, text: str) -> None:
    begin(store, "mine", "nursing leave")
    UserProfiles(store).put(ANN)
    store.users.assign_session("mine", "ann")

    assert UserProfiles(store).recall(SearchEarlierSessions("ann", text)) == ()
    assert UserProfiles(store).recall(SearchEarlierSessions("nobody", "nursing")) == ()


def test_a_dialogue_before_retrieval_recalls_through_the_store(store: Store) -> None:
    begin(store, "mine", "I work at the Osaka office")
    people = UserProfiles(store)
    people.put(ANN)
    store.users.assign_session("mine", "ann")
    model = scripted_model(written(1, 1, 5), capabilities=frozenset())
    shelf = InMemoryRetriever((Passage("a.md", "Osaka closes at six."),))

    runtime = Runtime(model, retriever=shelf, handlers=people.handlers)
    runtime.run(
        clarify((user("When does Osaka close?"),), ClarifyOptions(earlier_sessions=3), profile=people.get("ann"))
    )

    assert "I work at the Osaka office" in model.requests[0].messages[1].text
