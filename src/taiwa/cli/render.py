"""`taiwa render`: a type as a model sees it."""

from typing import TYPE_CHECKING

import click

from taiwa.cli.options import Flags, flags

if TYPE_CHECKING:
    from taiwa.kernel.records import Json

__all__ = ["render"]


@click.command()
@click.argument("target", metavar="TYPE")
@click.option(
    "--style", type=click.Choice(["typescript", "jsonschema", "openai"]), default="typescript",
    help="typescript: as in prompts; jsonschema: as for servers that hold a model to it; openai: its strict form.",
)  # fmt: skip
@click.option("--count", is_flag=True, help="Say about how many tokens each style is.")
@flags("json")
def render(shared: Flags, target: str, style: str, count: bool) -> None:
    """Print TYPE as a model sees it.

    TYPE is module:Type, whose module is run as python -m would, or a JSON Schema in a file that ends in .json.

    \b
    taiwa render shop:Order
    taiwa render shop:Order --style openai         and what this form can only say in words
    taiwa render schema.json --count
    """
    import json

    from taiwa.cli.screen import emit, say_line, table, tell
    from taiwa.cli.targets import load_shape
    from taiwa.conversation.derive import tokens_of

    shape = load_shape(target)
    strict = shape.native("openai")
    texts = {
        "typescript": shape.render(),
        "jsonschema": shape.render("jsonschema"),
        "openai": json.dumps(strict.schema, ensure_ascii=False, separators=(",", ":")),
    }
    tokens: dict[str, Json] = {name: tokens_of(text) for name, text in texts.items()}
    if shared.as_json:
        moved: list[Json] = [*strict.moved]
        lost: list[Json] = [*strict.lost]
        emit({"style": style, "text": texts[style], "tokens": tokens, "moved": moved, "lost": lost})
        return
    if count:
        table(("style", "tokens"), [(name, f"about {number:,}") for name, number in tokens.items()], frozenset({1}))
        return
    say_line(texts[style])
    if style == "openai":
        for line in strict.moved:
            tell(f"said in words: {line}")
        for line in strict.lost:
            tell(f"cannot be said, so this form is not used: {line}", "yellow")
