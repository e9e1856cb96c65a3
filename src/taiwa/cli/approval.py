"""Approval of tool calls on a terminal: show the call and ask."""

import json
import sys

import click

from taiwa.cli.output import print_notice, suspended_display
from taiwa.i18n import _
from taiwa.kernel.approval import ApprovalRequest, Approve, Decision
from taiwa.kernel.text import plain


def approver(mode: str) -> Approve | None:
    """Return who decides on calls that need approval; None if the user cannot be asked, so that such a call ends the run."""
    if mode == "always":
        return "always"
    if mode == "never":
        return "never"
    return ask_user if sys.stdin.isatty() and sys.stderr.isatty() else None


def ask_user(request: ApprovalRequest) -> Decision:
    """Show a call with all its arguments, and ask whether to make it; the end of the input means no."""
    with suspended_display():
        print_notice(_("the model wants to call a tool that needs approval:"), "yellow")
        click.echo(f"  {plain(request.name)}", err=True)
        for name, value in request.arguments.items():
            click.echo(f"    {plain(name)}: {plain(json.dumps(value, ensure_ascii=False))}", err=True)
        try:
            return click.confirm(_("call it?"), default=False, err=True)
        except click.Abort:  # the end of the input, or an interrupt
            return False
