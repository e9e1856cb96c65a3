"""A server of somebody else, made as the protocol's own library says."""

import os
import sys

from mcp.server.mcpserver import Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

server = MCPServer("Weather & more!")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def forecast(city: str, days: int = 1) -> dict[str, object]:
    """Tell the weather."""
    return {"city": city, "days": days, "sky": "晴れ"}


@server.tool()
def refuse(why: str) -> str:
    """Refuse."""
    raise ToolError(f"no: {why}")


@server.tool()
def break_down() -> str:
    """Fail with an error of its own."""
    raise KeyError("a secret")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def read_note() -> str:
    """Read a note."""
    return "a note"


@server.tool(annotations=ToolAnnotations(destructive_hint=False))
def add_note() -> str:
    """Add a note."""
    return "added"


@server.tool(annotations=ToolAnnotations(destructive_hint=True))
def delete_note() -> str:
    """Delete a note."""
    return "deleted"


@server.tool()
def picture() -> list[str | Image]:
    """Give a picture of one pixel."""
    return ["a pixel", Image(data=b"GIF89a\x01\x00\x01\x00\x00\x00\x00;", format="png")]


@server.tool()
def broken_picture() -> Image:
    """Give what is not a picture."""
    return Image(data=b"\x89PNG", format="png")


@server.tool()
def environment() -> str:
    """Tell the names of the environment."""
    return " ".join(sorted(os.environ))


@server.tool()
def leave() -> str:
    """End the server."""
    sys.stderr.write("the last words\n")
    sys.stderr.flush()
    os._exit(3)


@server.tool()
def calculator(expression: str) -> str:
    """Have the name of a built-in tool."""
    return "42"


if __name__ == "__main__":
    server.run()
