"""Every command that a document or a message of the program names exists, with its options and its number of arguments."""

import ast
import re
import shlex
from pathlib import Path

import click
import pytest

from taiwa.cli.main import cli
from tests.house.source import sources
from tests.house.test_documents import DOCUMENTS, relative

PAGES = [path for path in DOCUMENTS if path.parent.name != "decisions" and path.name != "CHANGELOG.md"]
"""Decisions and the changelog describe commands as they once were."""
IN_A_BLOCK = re.compile(r"(?m)^    (?:\w+=\S+ )*(taiwa [^\n]+)")
IN_A_SENTENCE = re.compile(r"`(taiwa [^`\n]+)`")
REST = re.compile(r"\s{2,}|\s[#|<>&]|;| …$")
"""What may stand behind a command in its line: a remark, another command."""


def shown(text: str) -> list[str]:
    """The commands that a text names."""
    return [REST.split(line)[0].strip() for line in (*IN_A_BLOCK.findall(text), *IN_A_SENTENCE.findall(text))]


def fault(line: str) -> str:
    """Return why a command cannot be typed, whatever its values are; "" if it can."""
    command: click.Command | None = cli
    context: click.Context | None = None
    words = shlex.split(re.sub(r"\{[^{}]*\}", "1", line))
    try:
        while command is not None and words:
            name, *words = words
            context = command.make_context(name, words, parent=context)
            words = [*context._protected_args, *context.args]
            command = command.get_command(context, words[0]) if isinstance(command, click.Group) and words else None
            if command is None and words and not words[0].isupper():
                return f"unknown command {words[0]}"
    except (click.BadParameter, click.BadOptionUsage, click.exceptions.NoArgsIsHelpError, click.exceptions.Exit):
        return ""  # a value that only stands for one, or a command that is only named
    except click.UsageError as error:
        return error.message
    return ""


@pytest.mark.parametrize("path", PAGES, ids=relative)
def test_a_document_names_commands_that_can_be_typed(path: Path) -> None:
    assert not [(line, found) for line in shown(path.read_text("utf-8")) if (found := fault(line))]


def test_a_message_names_commands_that_can_be_typed() -> None:
    texts = [
        node.value
        for source in sources()
        if "taiwa " in source.text
        for node in source.nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    assert not [(line, found) for text in texts for line in shown(text) if (found := fault(line))]


@pytest.mark.parametrize(
    "line", ["taiwa index drop handbook", "taiwa sya hi", "taiwa say --cheap hi", "taiwa apps lst"]
)
def test_a_command_that_cannot_be_typed_is_found(line: str) -> None:
    assert fault(line)
