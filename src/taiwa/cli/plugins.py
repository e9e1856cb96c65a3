"""List what installed packages add: plugins."""

import click

from taiwa.cli.options import CommonOptions, common_options
from taiwa.cli.output import print_json, print_notice, table


@click.command()
@common_options("as_json")
def plugins(common: CommonOptions) -> None:
    """List the plug-ins of installed packages: apps, models, readers, reducers, retrievers and tools.

    A plug-in is used when it is named. One that cannot be used is listed with the reason, and the others work.

    \b
    taiwa plugins
    taiwa plugins --json
    taiwa config set plugins.SOME-PACKAGE off        use nothing of a package
    """
    from taiwa.operations.plugins import list_plugins

    found = list_plugins()
    if common.as_json:
        print_json(
            [
                {"kind": each.plugin.kind, "name": each.plugin.name, "value": each.plugin.value,
                 "package": each.plugin.package, "version": each.plugin.version, "state": each.state,
                 "problem": each.problem or None}
                for each in found
            ]
        )  # fmt: skip
        return
    if not found:
        print_notice("no installed package offers a plug-in; docs/plugins.md shows how to write one")
        return
    table(
        ("kind", "name", "package", "state"),
        [
            (each.plugin.kind, each.plugin.name, f"{each.plugin.package} {each.plugin.version}", each.state)
            for each in found
        ],
    )
    for problem in dict.fromkeys(each.problem for each in found if each.state in ("hidden", "broken")):
        print_notice(problem)
