"""`taiwa read`: the text of an answer as a type, without any model."""

import sys
from pathlib import Path

import click

from taiwa.cli.options import Flags, flags

__all__ = ["read"]

MOST_CHARS = 64 << 20


@click.command()
@click.argument("file")
@click.option("--type", "target", metavar="TYPE", required=True, help="module:Type, or a JSON Schema in FILE.json.")
@click.option("--no-guess", is_flag=True, help="Refuse what can be read only by a guess.")
@flags("json", "verbose")
def read(shared: Flags, file: str, target: str, no_guess: bool) -> None:
    """Read the text of an answer in FILE (`-` for standard input) as TYPE and print its value as JSON. No model is asked.

    What is not quite JSON is mended, -v says how. A text that ends before its value does is refused. The module of
    module:Type is run, as python -m would.

    \b
    taiwa read answer.txt --type shop:Order -v
    taiwa read - --type schema.json --json < answer.txt
    """
    from taiwa.cli.opening import decoded, read_file
    from taiwa.cli.screen import emit, tell
    from taiwa.cli.targets import load_shape
    from taiwa.cli.values import fix_lines, pretty, told_fix
    from taiwa.flows.extract import plain_json
    from taiwa.kernel.errors import ShapeError
    from taiwa.shape import Rules

    shape = load_shape(target)
    text = decoded(sys.stdin.buffer.read(), "standard input") if file == "-" else read_file(Path(file))
    try:
        found = shape.read(text, Rules(guess=not no_guess, most_chars=MOST_CHARS))
    except ShapeError as error:
        for line in error.diagnostics[1:] if shared.verbose else ():
            tell(line, "yellow")
        raise
    value = plain_json(shape, found.value)
    if shared.as_json:
        emit({"value": value, "fixes": [told_fix(fix) for fix in found.fixes], "guessed": found.guessed})
        return
    click.echo(pretty(value))
    if found.guessed:
        tell("read by a guess: -v shows where, --no-guess refuses it", "yellow")
    for line in fix_lines(found.fixes) if shared.verbose else ():
        tell(line)
