"""Completion of commands, options and conversations in a shell: completion."""

import click


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that completes commands, options and names of conversations in SHELL.

    \b
    taiwa completion bash > ~/.local/share/bash-completion/completions/taiwa
    taiwa completion zsh > ~/.zfunc/_taiwa         with fpath+=~/.zfunc before compinit in ~/.zshrc
    taiwa completion fish > ~/.config/fish/completions/taiwa.fish
    """
    from click.shell_completion import get_completion_class

    from taiwa.cli.main import COMPLETION, cli

    source = get_completion_class(shell)
    assert source is not None, "click completes in these shells"
    click.echo(source(cli, {}, "taiwa", COMPLETION).source(), nl=False)
