"""The programs that make turns: those of files, and the built-in ones `solve`, `extract` and `route`."""

from collections.abc import Iterable

from taiwa.conversation.app import EXTRACT, ROUTE, SOLVE, App
from taiwa.flows.program_turn import TurnProgram, program_of
from taiwa.kernel.attachments import Attachment
from taiwa.kernel.runtime import Tool


def turn_program(app: App, tools: Iterable[Tool], attachments: tuple[Attachment, ...] = ()) -> TurnProgram:
    """Return the program of a turn of an app, whose text has these attachments.

    Raises:
        ConfigError: its file was not confirmed. InputError: the app has no type to extract.
    """
    if app.flow in (EXTRACT, ROUTE):
        from taiwa.sessions.extract_turn import extract_turn

        return extract_turn(app, attachments)
    if app.flow == SOLVE:
        from taiwa.sessions.solve_turn import solve_turn

        return solve_turn(tools)
    return program_of(app.flow)
