"""Rules of access and front matter: what was meant as a restriction opens nothing, however it is written."""

import re
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.kernel.errors import ConfigError
from taiwa.retrieval import Index, Library
from taiwa.retrieval.document_access import (
    MOST_FRONT,
    SIDECAR,
    AccessUnclearError,
    Marks,
    audience_of,
    front_matter,
    read_rules,
)
from taiwa.retrieval.readers import FORMATS, read_document

NAMES = st.text("ab/", min_size=1, max_size=8).filter(lambda path: not re.search("^/|//|/$", path))
PATTERNS = st.lists(
    st.one_of(st.just("**"), st.text("ab*?", min_size=1, max_size=4).filter(lambda name: "**" not in name)),
    min_size=1, max_size=5,
)  # fmt: skip


def matches(pattern: str, path: str) -> bool:
    (rule,) = read_rules(f"{pattern!r}: [x]", "rules")
    return rule.matches(path)


def slowly(parts: list[str], names: list[str]) -> bool:
    """The definition: a rule matches a path and all that lies below it; `**` is any number of folders."""
    if not parts:
        return True
    if parts[0] == "**":
        return any(slowly(parts[1:], names[start:]) for start in range(len(names) + 1)) and bool(names)
    pattern = "".join({"*": "[^/]*", "?": "[^/]"}.get(sign, re.escape(sign)) for sign in parts[0])
    return bool(names) and re.fullmatch(pattern, names[0]) is not None and slowly(parts[1:], names[1:])


@given(PATTERNS, NAMES)
def test_rules_match_what_their_definition_says(parts: list[str], path: str) -> None:
    collapsed = [part for at, part in enumerate(parts) if part != "**" or parts[at - 1 : at] != ["**"]]

    assert matches("/".join(parts), path) == slowly(collapsed, path.split("/"))


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("**/" * 12 + "x", "a/" * 60 + "y"),
        ("/".join(["**", "a"] * 12) + "/b", "a/" * 60 + "c"),
        ("*a" * 40 + "b", "a" * 250),
        ("?*" * 60 + "b", "a" * 250),
    ],
)
def test_a_pattern_of_many_stars_is_matched_at_once(pattern: str, path: str) -> None:
    assert not matches(pattern, path)


@pytest.mark.parametrize("pattern", ["hr/**", "./hr/**", "/hr", "hr/", "hr//./**", "**/pay*", "h?", "/", "."])
def test_a_rule_is_normalised(pattern: str) -> None:
    assert matches(pattern, "hr/pay.md")


@pytest.mark.parametrize(
    ("pattern", "hint"),
    [
        ("HR/**", "there is 'hr/pay.md'"),
        ("{hr,x}/**", "write a rule for each folder"),
        ("[h]r/**", "write a rule for each folder"),
        ("human/**", "correct it, or remove it"),
        ("hr/pay", "correct it, or remove it"),
    ],
)
def test_a_rule_that_matches_nothing_stops_the_indexing(index: Index, folder: Path, pattern: str, hint: str) -> None:
    (folder / "hr").mkdir()
    (folder / "hr" / "pay.md").write_text("apples")
    (folder / SIDECAR).write_text(f"{pattern!r}: [group:hr]")

    with pytest.raises(ConfigError, match="matches no file") as raised:
        index.refresh()

    assert hint in raised.value.message
    assert index.documents(None) == ()


@pytest.mark.parametrize("pattern", ["../hr/**", "**.md", "a**b/x"])
def test_a_rule_that_could_be_meant_in_another_way_is_refused(pattern: str) -> None:
    with pytest.raises(ConfigError, match=r"rules:1: the rule"):
        read_rules(f"{pattern!r}: [x]", "rules")


def test_a_rule_for_an_empty_folder_or_one_that_is_not_indexed_is_in_order(index: Index, folder: Path) -> None:
    (folder / "hr").mkdir()
    (folder / ".git").mkdir()
    (folder / "old.xls").write_text("x")
    (folder / SIDECAR).write_text("hr/**: [a]\n.git: [a]\n'*.xls': [a]\n")

    assert index.refresh().problems == ()


def test_a_rule_of_a_parent_that_leads_nowhere_stops_the_indexing_of_a_part(library: Library, folder: Path) -> None:
    (folder / "hr").mkdir()
    (folder / "hr" / "pay.md").write_text("apples")
    (folder / SIDECAR).write_text("HR/**: [group:hr]")

    with pytest.raises(ConfigError, match="matches no file"):
        library.create(folder / "hr", "part").refresh()


def test_a_folder_that_is_called_like_a_pattern_keeps_its_own_rules(index: Index, folder: Path) -> None:
    (folder / "*").mkdir()
    (folder / "*" / SIDECAR).write_text("a.md: [x]")
    (folder / "*" / "a.md").write_text("apples")
    (folder / "b").mkdir()
    (folder / "b" / "a.md").write_text("apples")

    index.refresh()

    assert [passage.source for passage in index.find("apples")] == ["b/a.md"]


@pytest.mark.parametrize(
    "text",
    [
        "---\naccess: [group:hr]\n---\ntext",
        "---\n{access: [group:hr], title: x}\n---\ntext",
        "---\n  access: [group:hr]\n---\ntext",
        "---\ntitle: x\n\naccess:\n- group:hr\n...\ntext",
        "--- \n'access' : group:hr\n--- \n",
        '---\n"acc\\x65ss": group:hr\n---\n',
        "---\n\ufeffaccess: [group:hr]\n---\n",
    ],
)
def test_front_matter_says_who_may_see_a_document(text: str) -> None:
    assert front_matter(text).access == ("group:hr",)


UNCLEAR = (
    "---\nAccess: [a]\n---\n",
    "---\nACCESS: [a]\naccess: [b]\n---\n",
    "---\n' access': [a]\n---\n",
    "---\nmeta:\n  access: [a]\n---\n",
    "---\n- access: [a]\n---\n",
    "---\naccess:[a]\n---\n",
    "---\naccess: [a\n---\n",
    "---\naccess: {a: b}\n---\n",
    "---\naccess:\n---\n",
    "---\naccess: [a]\naccess: [b]\n---\n",
    "---\ntitle: x\n  access: [a]\n---\n",
    "---\nx: &a [a]\naccess: *a\n---\n",
    "---\naccess: [a]\n----\n",
    "----\naccess: [a]\n----\n",
    " ---\naccess: [a]\n---\n",
    "\n---\naccess: [a]\n---\n",
    "\ufeff\ufeff---\naccess: [a]\n---\n",
    "---\naccess: [a]\n",
    "---\ndescription: >\n  words of it\n\naccess: [a]\n\ntext of the document",
    "+++\naccess = ['a']\n+++\n",
    "---\naccess\uff1a[a]\n---\n",
    "---\n" + "x: y\n" * (MOST_FRONT // 5) + "access: [a]\n---\n",
    "---\naccess: [a]\n" + "x: y\n" * (MOST_FRONT // 5) + "---\n",
    # other openings, and what stands before them
    "--- # c\naccess: [a]\n---\n",
    "---yaml\naccess: [a]\n---\n",
    "--- access: [a]\n---\n",
    "--- {access: [a]}\n---\n",
    "%YAML 1.2\n---\naccess: [a]\n---\n",
    "% access: [a]\n\ntext",
    "\n" * 70_000 + "---\naccess: [a]\n---\n",
    " \t\u3000\u200b\n---\naccess: [a]\n---\n",
    "\u200b---\naccess: [a]\n---\n",
    "-\u200b--\naccess: [a]\n---\n",
    "\uff0d\uff0d\uff0d\naccess: [a]\n\uff0d\uff0d\uff0d\n",
    "\u2014\u2014\naccess: [a]\n\u2014\u2014\n",
    "***\naccess: [a]\n***\n",
    "+++\naccess = 'a'\n",
    "+++\n[extra]\naccess = ['a']\n+++\ntext",
    ";;;\n{'access': 'a'}\n;;;\n",
    "```yaml\naccess: [a]\n```\n",
    '{"access": ["a"], "title": "x"}\n\ntext',
    '{\n  "title": "x",\n  "access": ["a"]\n}\n\ntext',
    '{"title": "x","access":"a"}',
    "<!-- access: [a] -->\n# Title\n",
    "<!--\naccess: [a]\n-->\n# Title\n",
    "<!---\ntitle: x\naccess: [a]\n--->\n",
    "/*\n * access: [a]\n */\ntext",
    "access: [a]\n\ntext",
    "Title: x\nAccess: a\n\ntext",
    ":title: x\n:access: a\n\ntext",
    "@access: a\ntext",
    "access=a\n",
    "------\naccess: [a]\n------\n",
    "<!-- who wrote it -->\naccess: [a]\n",
    "<!-- who wrote it -->\n\n---\naccess: [a]\n---\n",
    "/* c */ <!-- d -->\n+++\naccess = 'a'\n+++\n",
    # line breaks
    "---\u2028access: [a]\u2028---\u2028",
    "---\x85access: [a]\x85---\x85",
    "---\vaccess: [a]\v---\v",
    "---\faccess: [a]\f---\f",
    "---\x1eaccess: [a]\x1e---\x1e",
    "---\raccess: [a]\r---\r",
    "---\ntitle: x\vaccess: [a]\n---\n",
    "---\ntitle: x\faccess: [a]\n---\n",
    # the word
    "---\n\uff41\uff43\uff43\uff45\uff53\uff53: [a]\n---\n",
    "---\n\U0001d41a\U0001d41c\U0001d41c\U0001d41e\U0001d42c\U0001d42c: [a]\n---\n",
    "---\nac\u200bcess: [a]\n---\n",
    "---\nac\u00adcess: [a]\n---\n",
    "---\n\u2060access\U000e0061: [a]\n---\n",
    "---\nac\u0441ess: [a]\n---\n",
    "---\nacces: [a]\n---\n",
    "---\nacc\u00e8s: [a]\n---\n",
    "---\naccesss: [a]\n---\n",
    "---\n_access_: [a]\n---\n",
    "---\naccess : \n---\n",
    "---\n\u201caccess\u201d: [a]\n---\n",
    '---\n"acc\\x65ss": [a\n---\n',
    # the sign
    "---\naccess [a]\n---\n",
    "---\naccess group:hr\n---\n",
    "---\naccess\n---\n",
    "---\naccess=[a]\n---\n",
    "---\naccess - a\n---\n",
    "---\naccess: \n  - [a]\n---\n",
    "---\ntitle: x\naccess [a]\n---\n",
    "---\ntitle: x\n  access a\n---\n",
    "---\ntitle: x, access: [a]\n---\n",
    "---\n? access\n: [[a]]\n---\n",
    "---\n? access\n: [a\n---\n",
    "---\ntitle: [x\nwho has access: a\n---\n",
)


@pytest.mark.parametrize("text", UNCLEAR)
def test_front_matter_that_mentions_access_and_cannot_be_read_closes_the_document(text: str) -> None:
    if len(text) > MOST_FRONT and text.index("access") > MOST_FRONT - 100:
        text = text.replace("x: y\n", "", 99)
    with pytest.raises(AccessUnclearError, match="closed to everyone"):
        front_matter(text)


@pytest.mark.parametrize(
    "text",
    [
        "", "text", "---", "---\n---\n", "---\ntitle: Remote access\n---\n", "---\ntitle: 'On access: a guide'\n---\n",
        "-----\nTitle\n-----\naccess: none of it is front matter", "words\n---\naccess: [a]\n---\n", "---\naccess-control: [a]\n---\n",
        "---\n\nOnce upon a time somebody got\naccess: a story", "# Access: how to get in\n\ntext", "# Title\n\nAccess: by bus",
        "---\naccessed: 2024-01-01\naccessible: yes\n---\n", "---\nsuccess: 1\nprocess: a\nexcess: b\n---\n",
        "title: x\n\naccess: [a]", "Access to the castle is by bus.\n", "{{ page }}\naccess",
        "<!-- who wrote it -->\n# Title\naccess: [a]", "```\ncode\n```\naccess: [a]", "name,access\nann,hr\n", "| access | x |\n|---|---|\n",
        "--- Chapter 1 ---\nAccess to the castle was by a bridge.\n---\n", "- access: by bus\n", "**Access**: by bus\n",
    ],
)  # fmt: skip
def test_a_document_that_does_not_restrict_access_stays_open(text: str) -> None:
    assert front_matter(text).access is None


def test_a_closed_document_is_listed_for_the_owner_alone_and_opens_when_mended(index: Index, folder: Path) -> None:
    for name, text in (("a.md", "---\nAccess: [x]\n---\napples"), ("b.txt", "---\nAccess: [x]\n---\napples")):
        (folder / name).write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())

    first, again = index.refresh(), index.refresh()

    assert [(each.path, each.why[:18]) for each in first.problems] == [
        ("a.md", "closed to everyone"),
        ("b.txt", "closed to everyone"),
    ]
    assert again.problems == first.problems
    assert index.find("apples", principals={"x"}) == ()
    assert index.documents({"x"}) == ()
    assert [each.path for each in index.documents(None)] == ["a.md", "b.txt"]
    (folder / "a.md").write_text("---\naccess: [x]\n---\napples")
    index.refresh()
    assert [each.source for each in index.find("apples", principals={"x"})] == ["a.md"]
    assert index.find("apples") == ()


@given(st.text("aces:-\n []{}#\"'\ufeff\r\t\\x65&*<", max_size=60), st.sampled_from(UNCLEAR[:12]), st.data())
def test_whatever_stands_around_it_a_restriction_is_never_lost_in_silence(
    junk: str, text: str, data: st.DataObject
) -> None:
    inside = text.removeprefix("---\n").removesuffix("---\n")
    lines = inside.split("\n")
    at = data.draw(st.integers(0, len(lines)))
    mutated = "\n".join((*lines[:at], f"x{at}: {junk}" if "\n" not in junk else "y: z", *lines[at:]))

    try:
        front = front_matter(f"---\n{mutated}\n---\n")
    except AccessUnclearError:
        return
    assert front.access is not None


def test_rules_only_narrow(index: Index) -> None:
    rules = read_rules("a: [x]\n'**': [y, z]\na/b: [x, w]", "rules")

    for count in range(4):
        for some in combinations(rules, count):
            audience = audience_of("a/b/c", some, ["own"])
            assert len(audience) == len({rule.names for rule in some}) + 1


@pytest.mark.parametrize(
    ("marks", "text"),
    [
        ("comments", "# access: group:hr\nname,pay\nAnn,9\n"),
        ("comments", "name,pay\n# Access = hr\nAnn,9\n"),
        ("comments", "#acces: hr\nname\n"),
        ("comments", "// access: hr\ntext\n"),
        ("comments", ";access: hr\r\ntext\r\n"),
        ("comments", "-- access: hr\n"),
        ("comments", ".. access: hr\n\nTitle\n=====\n"),
        ("comments", "#+ACCESS: hr\n* Heading\n"),
        ("comments", '% "access": hr\n\\documentclass{article}\n'),
        ("comments", "---\ntitle: x\n---\n# access: hr\n"),
        ("comments", "\ufeff# ａccess: hr\n"),
        ("page", '<!DOCTYPE html><html><head><meta name="access" content="group:hr"></head><body>x</body>'),
        ("page", "<html><META CONTENT='hr' NAME='Access'>"),
        ("page", "<html><head><meta charset=utf-8 property=dc:access content=hr>"),
        ("page", '<html><head><meta content="a > b" name="access">'),
        ("page", "<html><head><meta <meta name=access content=hr>"),
        ("page", "<html><!-- ====== <!-- access: hr -->"),
        ("page", "<!DOCTYPE html>\n<!-- access: group:hr -->\n<html><body>x"),
        ("page", "<p>x</p><!-- ACCESS = hr -->"),
        ("page", '<head><meta name="acc&#101;ss" content="hr"></head>'),
        ("markdown", "# Pay\n<!-- access: hr -->\nAnn is paid 9.\n"),
        ("markdown", "# Pay\n\n<!--\naccess: hr\n-->\nAnn is paid 9.\n"),
        ("markdown", "---\ntitle: x\n---\n---\naccess: [group:hr]\n---\n# Pay\n"),
        ("markdown", "---\ntitle: x\n--- \naccess: [group:hr]\n---\n# Pay\n"),
    ],
)
def test_metadata_of_a_format_that_mentions_access_closes_the_document(marks: Marks, text: str) -> None:
    with pytest.raises(AccessUnclearError, match="closed to everyone: it mentions access"):
        front_matter(text, marks)


@pytest.mark.parametrize(
    ("marks", "text"),
    [
        ("comments", "# Access to the castle\n\nBy bus: nine.\n"),
        ("comments", "# accessed: 2024-01-01\nname,access\n"),
        ("comments", "#\n" * 20 + "# access: hr\n"),
        ("comments", "---\naccess: [group:hr]\n---\n# access: hr\n"),
        ("page", '<head><meta name="accessibility" content="x"><meta name="viewport" content="access: x"></head>'),
        ("page", "<body><!-- access: the bus -->"),
        ("page", "<!-- Access to the castle --><p>access: by bus</p>"),
        ("markdown", "# Access: by bus\n"),
        ("markdown", "---\ntitle: The castle\n---\n# Access: by bus\n"),
        ("markdown", "---\ntitle: The castle\n---\nAccess to the castle is free.\n"),
        ("markdown", "#\n" * 20 + "<!-- access: hr -->\n"),
    ],
)
def test_metadata_of_a_format_about_something_else_leaves_the_document_open(marks: Marks, text: str) -> None:
    assert front_matter(text, marks).access in (None, ("group:hr",))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pay.csv", "# access: group:hr\nname,pay\nAnn,9\n"),
        ("pay.txt", "# access: group:hr\n\nAnn is paid 9.\n"),
        (
            "pay.html",
            '<html><head><meta name="access" content="group:hr"></head><body><p>Ann is paid 9.</p></body></html>',
        ),
    ],
)
def test_a_file_of_each_format_with_such_metadata_is_closed(name: str, text: str) -> None:
    with pytest.raises(AccessUnclearError):
        read_document(text.encode(), FORMATS[f".{name.rpartition('.')[2]}"], 10_000)
