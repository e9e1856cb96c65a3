"""User profiles in the server's own API: the users of `taiwa user`, whose facts and feedback the apps that search documents read."""

from dataclasses import replace

from starlette.requests import Request

from taiwa.flows.ask.types import Feedback, UserProfile, parse_verdict
from taiwa.kernel.serialization import Json
from taiwa.operations.result_json import Person, PersonEntry, person_to_json, to_json
from taiwa.server.api_types import Deleted, PersonChange, Rating
from taiwa.server.http_responses import ApiError, error_to_json
from taiwa.server.request import Fields, name_of, repository_of
from taiwa.server.wire_interface import DELETE, GET, POST, Described, Route, Wire
from taiwa.sessions.users import UserProfiles, set_profile_value


def _users(request: Request) -> UserProfiles:
    return UserProfiles(repository_of(request).store)


def _known(users: UserProfiles, name: str) -> UserProfile:
    if not users.has(name):
        raise ApiError(404, f"person {name[:80]!r} not found", code="person_not_found")
    return users.get(name)


def shown_person(users: UserProfiles, name: str) -> dict[str, Json]:
    """Return a user profile as JSON.

    Raises:
        ApiError: there is no profile of that name.
    """
    return person_to_json(_known(users, name), users.feedback(name))


def list_persons(request: Request) -> Json:
    """List the user profiles of the caller."""
    found: Json = to_json(repository_of(request).store.users.list())
    return found


def show(request: Request) -> Json:
    """Return a user profile: language, facts, thresholds, and the effect of feedback."""
    return shown_person(_users(request), name_of(request))


def change(request: Request, body: Fields) -> Json:
    """Set facts, language and thresholds of a new or existing user profile; null or "" removes a fact."""
    name, users = name_of(request), _users(request)
    profile = users.get(name) if users.has(name) else UserProfile(name)
    for key, text in _values(body):
        profile = set_profile_value(profile, key, text)
    users.put(replace(profile, name=name))
    return shown_person(users, name)


def _values(body: Fields) -> list[tuple[str, str]]:
    """Read the values to set, each as the text of its key."""
    values = [("language", body.text("language", ""))] if "language" in body.data else []
    if (facts := body.object("facts")) is not None:
        values += [(key, facts.text(key, "")) for key in facts.data]
    if (thresholds := body.object("thresholds")) is not None:
        for key in thresholds.data:
            number = thresholds.number(key, 0, 10**6)
            values.append((f"thresholds.{key}", "" if number is None else f"{number:g}"))
    return values


def delete(request: Request) -> Json:
    """Delete a user profile and its feedback; the conversations stay."""
    name = name_of(request)
    _known(_users(request), name)
    repository_of(request).store.users.delete(name)
    return {"deleted": name}


def rate(request: Request, body: Fields) -> Json:
    """Store a verdict on the last turn: good, bad, should_have_asked or should_not_have_asked."""
    name, users, verdict = name_of(request), _users(request), parse_verdict(body.text("verdict"))
    asked = body.flag("asked") or verdict == "should_not_have_asked"
    _known(users, name)
    users.add_feedback(name, Feedback(verdict, asked))
    return shown_person(users, name)


def forget(request: Request) -> Json:
    """Delete the feedback of a user profile, and thus its effect."""
    name, users = name_of(request), _users(request)
    _known(users, name)
    repository_of(request).store.users.clear_feedback(name)
    return shown_person(users, name)


HERE = "/api/persons/{name}"
wire = Wire(
    "persons",
    (
        Route("/api/persons", list_persons, GET, api=Described(list[PersonEntry])),
        Route(HERE, show, GET, api=Described(Person)),
        Route(HERE, change, POST, api=Described(Person, PersonChange)),
        Route(HERE, delete, DELETE, api=Described(Deleted)),
        Route(f"{HERE}/feedback", rate, POST, api=Described(Person, Rating)),
        Route(f"{HERE}/feedback", forget, DELETE, api=Described(Person)),
    ),
    error_to_json,
)
