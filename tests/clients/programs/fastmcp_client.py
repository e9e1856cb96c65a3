"""The client of fastmcp: tools, prompts, resources, errors."""

import asyncio
import os

from fastmcp import Client
from fastmcp.client.auth import BearerAuth
from refusals import refused


async def run() -> None:
    async with Client(f"{os.environ['SERVER']}/mcp", auth=BearerAuth(os.environ["OPENAI_API_KEY"])) as client:
        assert {"calculator", "find", "extract"} <= {tool.name for tool in await client.list_tools()}
        assert "85" in str((await client.call_tool("calculator", {"expression": "17 * 5"})).content)
        assert "chat" in {prompt.name for prompt in await client.list_prompts()}
        assert (await client.get_prompt("chat")).messages
        assert [each.name for each in await client.list_resource_templates()] == ["passage"]
        with refused("expected a number"):
            await client.call_tool("calculator", {"expression": "1 +"})


asyncio.run(run())
