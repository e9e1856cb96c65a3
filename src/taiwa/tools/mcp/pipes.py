"""The pipes to a foreign server: one JSON message a line, bounded, over a process that is ended with all that it started.

The library's own transport gathers a line of any length, so one answer of a gigabyte would be ours to hold.
"""

import os
import signal
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TypeAlias

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream, Process
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

__all__ = ["Streams", "piped"]

Streams: TypeAlias = tuple[
    MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]
]
LEAVES_SECONDS = 1.0
END_SECONDS = 1.0
KEPT_BYTES = 4_000
CLOSED = (anyio.ClosedResourceError, anyio.BrokenResourceError, anyio.EndOfStream, OSError)


@asynccontextmanager
async def piped(command: Sequence[str], said: bytearray, longest: int) -> AsyncGenerator[Streams]:
    """Start a server and talk with it; a line of more than `longest` bytes ends the connection.

    `said` keeps the end of what it writes to standard error.

    Raises:
        OSError: the process could not be started.
    """
    process = await anyio.open_process(list(command), env=get_default_environment(), start_new_session=True)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    arrived, reading = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    writing, given = anyio.create_memory_object_stream[SessionMessage](0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_read, process.stdout, arrived, longest, said)
        tasks.start_soon(_keep, process.stderr, said)
        tasks.start_soon(_write, process.stdin, given, arrived)
        try:
            yield reading, writing
        finally:
            with anyio.CancelScope(shield=True):
                await _end(process)
                for stream in (reading, writing, arrived, given):
                    await stream.aclose()
            tasks.cancel_scope.cancel()


async def _read(
    output: ByteReceiveStream,
    arrived: MemoryObjectSendStream[SessionMessage | Exception],
    longest: int,
    said: bytearray,
) -> None:
    held = bytearray()
    async with arrived:
        with suppress(*CLOSED):
            while len(held) <= longest:
                held += await output.receive()
                *lines, rest = held.split(b"\n")
                held = bytearray(rest)
                for line in lines:
                    await arrived.send(_message(line))
            said[:] = b"it sent a message of more than %d bytes" % longest


def _message(line: bytes | bytearray) -> SessionMessage | Exception:
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(bytes(line), by_name=False))
    except ValueError as error:
        return error


async def _keep(errors: ByteReceiveStream, said: bytearray) -> None:
    with suppress(*CLOSED):
        while True:
            said += await errors.receive()
            del said[:-KEPT_BYTES]


async def _write(
    process_input: ByteSendStream,
    given: MemoryObjectReceiveStream[SessionMessage],
    arrived: MemoryObjectSendStream[SessionMessage | Exception],
) -> None:
    async with given:
        try:
            async for message in given:
                line = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                await process_input.send(line.encode() + b"\n")
        except CLOSED:
            # Whoever waits for an answer to this learns that none will come.
            await arrived.aclose()


async def _end(process: Process) -> None:
    """Close the server's input, and kill it with all that it started, should it not go by itself."""
    assert process.stdin is not None
    with suppress(*CLOSED):
        await process.stdin.aclose()
    with anyio.move_on_after(LEAVES_SECONDS):
        await process.wait()
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with anyio.move_on_after(END_SECONDS):
        await process.wait()
    with suppress(*CLOSED):
        await process.aclose()
