"""Who asks, from the command line."""

from pathlib import Path

from tests.cli.conftest import Place, Taiwa


def test_there_are_no_users_at_first(taiwa: Taiwa) -> None:
    assert "there are no users yet" in taiwa.ok("user", "list").err
    assert taiwa.ok("user", "list", "--json").json == []


def test_a_user_is_set_shown_and_listed(taiwa: Taiwa) -> None:
    taiwa.ok("user", "set", "ann", "office=Osaka", "部署=営業", "language=ja", "eagerness=0.8")
    taiwa.ok("user", "set", "ann", "office=京都", "部署=")

    found = taiwa.ok("user", "show", "ann", "--json").json
    assert found["facts"] == {"office": "京都"}
    assert found["language"] == "ja"
    assert found["thresholds"]["eagerness"] == 0.8
    assert found["learned"] == {"welcome": 0.5, "unclear": 2}
    assert taiwa.ok("user", "list", "--json").json == [{"user": "ann", "feedback": 0, "sessions": 0}]
    assert "京都" in taiwa.ok("user", "show", "ann").out


def test_feedback_changes_thresholds_and_can_be_reset(taiwa: Taiwa) -> None:
    taiwa.ok("user", "set", "ann")
    taiwa.ok("user", "rate", "ann", "should not have asked")
    taiwa.ok("user", "rate", "ann", "/bad", "--asked")

    found = taiwa.ok("user", "show", "ann", "--json").json
    assert found["learned"]["welcome"] < 0.5
    assert found["learned"]["unclear"] > 2
    assert found["feedback"] == {"should_not_have_asked": 1, "bad": 1}
    assert "bad 1, should_not_have_asked 1" in taiwa.ok("user", "show", "ann").out
    assert taiwa.ok("user", "reset", "ann", "--json").json == {"user": "ann", "deleted": 2}
    assert taiwa.ok("user", "show", "ann", "--json").json["learned"]["welcome"] == 0.5


def test_an_exported_profile_can_be_read_again(taiwa: Taiwa, place: Place) -> None:
    taiwa.ok("user", "set", "ann", "office=Osaka", "max_questions=1")
    written = taiwa.ok("user", "export", "ann").out
    file = Path(place.folder) / "ann.yaml"
    file.write_text(written)

    taiwa.ok("user", "set", "bob", "--file", str(file), "office=Kyoto")

    found = taiwa.ok("user", "export", "bob", "--json").json
    assert (found["user"], found["facts"], found["thresholds"]["max_questions"]) == ("bob", {"office": "Kyoto"}, 1.0)
    assert (found["feedback"], found["sessions"]) == ([], [])


def test_a_user_is_removed(taiwa: Taiwa) -> None:
    taiwa.ok("user", "set", "ann")
    taiwa.ok("user", "remove", "ann")

    assert taiwa.ok("user", "list", "--json").json == []


def test_invalid_input_is_an_error_of_one_line(taiwa: Taiwa) -> None:
    for words, expected in (
        (("show", "bob"), "user 'bob' not found"),
        (("set", "ann", "eagerness=9"), "from 0 to 1"),
        (("set", "ann", "office"), "KEY=VALUE"),
        (("rate", "ann", "meh"), "unknown verdict"),
        (("set", "ann", "--file", "none.yaml"), "No such file"),
    ):
        result = taiwa("user", *words)
        assert result.code == 2
        assert expected in result.err
        assert len(result.err.splitlines()) == 1


def test_a_fact_without_a_value_is_one_line(taiwa: Taiwa) -> None:
    refused = taiwa("user", "set", "ann", "Osaka")

    assert refused.code == 2
    assert refused.err == "taiwa: a fact must be KEY=VALUE, got 'Osaka'\n"
