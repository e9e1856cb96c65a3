"""`taiwa laws`: the laws of conversations, reducers and apps, tried on generated cases."""

import time

import click

from taiwa.cli.options import Flags, flags
from taiwa.cli.output import emit, say_line, table, tell
from taiwa.i18n import ngettext
from taiwa.kernel.errors import InputError
from taiwa.kernel.records import Json

__all__ = ["laws"]


@click.command()
@click.argument("names", nargs=-1)
@click.option(
    "-n", "examples", type=click.IntRange(1, 100_000), default=100, show_default=True, help="Cases for each law."
)
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed tries the same cases.")
@flags("json")
def laws(shared: Flags, names: tuple[str, ...], examples: int, seed: int) -> None:
    """Try the laws on generated cases: of programs and conversations, or of the apps and reducers NAMES.

    A name is that of an app or its file, of a reducer, or of an installed package that offers reducers. A broken law gives
    exit code 2 and the smallest case that breaks it.

    \b
    taiwa laws
    taiwa laws translate ./tutor.md -n 1000
    """
    from taiwa.lab.laws import check_laws

    started = time.monotonic()
    results = check_laws(names, examples=examples, seed=seed)
    if shared.as_json:
        rows: list[Json] = [
            {
                "law": one.law,
                "subject": one.subject,
                "ok": one.ok,
                "examples": one.examples,
                "broken_by": one.counterexample,
            }
            for one in results
        ]
        emit({"laws": rows})
    else:
        table(
            ("law", "of", "cases", "holds"),
            [(one.law, one.subject, str(one.examples), "yes" if one.ok else "NO") for one in results],
            frozenset({2}),
        )
        for one in results:
            if not one.ok:
                say_line(f"\n{one.law} of {one.subject} is broken by:\n{one.counterexample}", "red")
        laws = ngettext("{n} law", "{n} laws", len(results))
        cases = ngettext("{n} case", "{n} cases", sum(one.examples for one in results))
        tell(f"{laws}, {cases}, {time.monotonic() - started:.1f} s")
    broken = sum(not one.ok for one in results)
    if broken:
        raise InputError(f"{broken} law(s) are broken")
