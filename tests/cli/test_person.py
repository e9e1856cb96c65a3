"""Who asks, from the command line."""

from pathlib import Path

from tests.cli.conftest import Place, Taiwa


def test_nobody_is_known_at_first(taiwa: Taiwa) -> None:
    assert "there are no users yet" in taiwa.ok("user", "list").err
    assert taiwa.ok("user", "list", "--json").json == []


def test_a_person_is_set_shown_and_listed(taiwa: Taiwa) -> None:
    taiwa.ok("user", "set", "ann", "office=Osaka", "部署=営業", "language=ja", "eagerness=0.8")
    taiwa.ok("user", "set", "ann", "office=京都", "部署=")

    found = taiwa.ok("user", "show", "ann", "--json").json
    assert found["facts"] == {"office": "京都"}
    assert found["language"] == "ja"
    assert found["thresholds"]["eagerness"] == 0.8
    assert found["learnt"] == {"welcome": 0.5, "unclear": 2}
    assert taiwa.ok("user", "list", "--json").json == [{"user": "ann", "verdicts": 0, "sessions": 0}]
    assert "京都" in taiwa.ok("user", "show", "ann").out


def test_feedback_moves_what_is_shown_and_can_be_forgotten(taiwa: Taiwa) -> None:
    taiwa.ok("user", "set", "ann")
    taiwa.ok("user", "tell", "ann", "should not have asked")
    taiwa.ok("user", "tell", "ann", "/bad", "--asked")

    found = taiwa.ok("user", "show", "ann", "--json").json
    assert found["learnt"]["welcome"] < 0.5
    assert found["learnt"]["unclear"] > 2
    assert found["verdicts"] == {"should_not_have_asked": 1, "bad": 1}
    assert "bad 1, should_not_have_asked 1" in taiwa.ok("user", "show", "ann").out
    assert taiwa.ok("user", "reset", "ann", "--json").json == {"user": "ann", "deleted": 2}
    assert taiwa.ok("user", "show", "ann", "--json").json["learnt"]["welcome"] == 0.5


def test_a_profile_goes_out_and_comes_in_again(taiwa: Taiwa, place: Place) -> None:
    taiwa.ok("user", "set", "ann", "office=Osaka", "max_questions=1")
    written = taiwa.ok("user", "export", "ann").out
    file = Path(place.folder) / "ann.yaml"
    file.write_text(written)

    taiwa.ok("user", "set", "bob", "--file", str(file), "office=Kyoto")

    found = taiwa.ok("user", "export", "bob", "--json").json
    assert (found["user"], found["facts"], found["thresholds"]["max_questions"]) == ("bob", {"office": "Kyoto"}, 1.0)
    assert (found["verdicts"], found["sessions"]) == ([], [])


def test_a_person_is_removed(taiwa: Taiwa) -> None:
    taiwa.ok("user", "set", "ann")
    taiwa.ok("user", "remove", "ann")

    assert taiwa.ok("user", "list", "--json").json == []


def test_mistakes_are_told_in_one_line(taiwa: Taiwa) -> None:
    for words, expected in (
        (("show", "bob"), "user 'bob' not found"),
        (("set", "ann", "eagerness=9"), "from 0 to 1"),
        (("set", "ann", "office"), "KEY=VALUE"),
        (("tell", "ann", "meh"), "unknown verdict"),
        (("set", "ann", "--file", "none.yaml"), "No such file"),
    ):
        result = taiwa("user", *words)
        assert result.code == 2
        assert expected in result.err
        assert len(result.err.splitlines()) == 1
