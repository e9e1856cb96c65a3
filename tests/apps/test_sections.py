import pytest

from taiwa.apps.app_file import Block, Problems, split_file

FRONT = "---\ntaiwa: 1\n---\n"


def test_the_two_headings_divide_the_text_below_the_front_matter() -> None:
    faults = Problems()

    parts = split_file(f"{FRONT}Body\n## summary\nShort\n## example\nuser: a\n## example\nuser: b", faults)

    assert parts.front == Block("taiwa: 1", 2)
    assert parts.body == Block("Body", 4)
    assert parts.summaries == (Block("Short", 6),)
    assert parts.examples == (Block("user: a", 8), Block("user: b", 10))
    assert faults.entries == []


@pytest.mark.parametrize(
    "line",
    [
        "## Examples",
        "## example of a reply",
        "##example of it",
        "## summarys",
        " ## Steps",
        "Text ## example",
        "#",
        "## ",
    ],
)
def test_other_headings_belong_to_the_instructions(line: str) -> None:
    faults = Problems()

    parts = split_file(f"{FRONT}Body\n{line}\nmore", faults)

    assert parts.body.text == f"Body\n{line}\nmore"
    assert (parts.summaries, parts.examples, faults.entries) == ((), (), [])


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ("```", "```"),
        ("````md", "````"),
        ("~~~", "~~~~"),
        ("   ```python", "  ```"),
        ("```\n~~~", "```"),
        ("````\n```", "````"),
    ],
)
def test_a_heading_in_a_code_fence_belongs_to_the_code(opening: str, closing: str) -> None:
    faults = Problems()

    parts = split_file(f"{FRONT}{opening}\n## example\n{closing}\n## example\nuser: a", faults)

    assert parts.body.text == f"{opening}\n## example\n{closing}"
    assert [block.text for block in parts.examples] == ["user: a"]
    assert faults.entries == []


def test_what_only_looks_like_a_fence_hides_no_heading() -> None:
    parts = split_file(f"{FRONT}Write ``` for code\n    ```\n``` a ` b\n## example\nuser: a", Problems())

    assert len(parts.examples) == 1


def test_a_fence_in_an_example_hides_no_heading() -> None:
    parts = split_file(f"{FRONT}Body\n## example\nanswer: |\n  ```\n## example\nuser: b", Problems())

    assert [block.text for block in parts.examples] == ["answer: |\n  ```", "user: b"]


def test_spaces_after_a_heading_or_a_rule_are_ignored() -> None:
    parts = split_file("--- \ntaiwa: 1\n---\t\nBody\n## summary \nShort", Problems())

    assert (parts.body.text, parts.summaries[0].text) == ("Body", "Short")
