"""User profiles in a store, and what they learn from feedback."""

from collections.abc import Iterator

import pytest

from taiwa.flows.ask.types import Feedback, Thresholds, UserProfile
from taiwa.kernel.errors import CorruptError, InputError
from taiwa.sessions.users import UserProfiles
from taiwa.store import Store

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
