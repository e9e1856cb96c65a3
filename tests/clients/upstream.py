"""A model's server that plays by what it is asked: statuses, given texts, calls of tools, and values of schemas."""

import json
import re
from collections.abc import Mapping
from secrets import token_hex
from typing import Any

from tests.peers.faults import DONE, USAGE, Act, Scene, event, head, speech, status

Json = Mapping[str, Any]
STATUS = re.compile(r"status (\d{3})")
SAY = re.compile(r"SAY <<<(.*?)>>>", re.DOTALL)
CODES = {400: "invalid_value", 401: "invalid_api_key", 429: "rate_limit_exceeded"}


def sample(schema: Json, root: Json | None = None) -> object:
    """Make a value of a schema."""
    root = root or schema
    if "$ref" in schema:
        found: Any = root
        for name in schema["$ref"].removeprefix("#/").split("/"):
            found = found[name]
        return sample(found, root)
    if "const" in schema or "enum" in schema:
        return schema["const"] if "const" in schema else schema["enum"][0]
    if options := schema.get("anyOf") or schema.get("oneOf"):
        return sample(options[0], root)
    kind = schema.get("type", "object" if "properties" in schema else "string")
    if kind == "object":
        return {name: sample(each, root) for name, each in schema.get("properties", {}).items()}
    if kind == "array":
        return [sample(schema.get("items", {}), root)]
    return {"string": "Nara", "integer": 3, "number": 1.5, "boolean": True}.get(kind)


def text_of(message: Json) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def calls(offered: list[Json], choice: object) -> bytes:
    """The events that call the tool that must be called, or the first one."""
    named = choice["function"]["name"] if isinstance(choice, dict) else offered[0]["function"]["name"]
    parameters = next(each["function"].get("parameters") or {} for each in offered if each["function"]["name"] == named)
    call = {"index": 0, "id": f"call_{token_hex(4)}", "type": "function"}
    call |= {"function": {"name": named, "arguments": json.dumps(sample({"type": "object"} | parameters))}}
    return event({"tool_calls": [call]}) + event({}, finish="tool_calls") + event(usage=USAGE) + DONE


async def play(scene: Scene) -> None:
    """Answer a request of Chat Completions."""
    await act_for(json.loads(scene.seen.body))(scene)


def act_for(body: Json) -> Act:
    """Choose the answer: what the last user asks for, else a call, else a value, else what was read."""
    said = [text_of(message) for message in body["messages"] if message["role"] == "user"]
    last, asked = body["messages"][-1], "\n".join(said[-2:])  # a schema may follow in words
    if found := STATUS.search(asked):
        code = int(found[1])
        error = {"message": f"as you wish: {code}", "type": "test", "code": CODES.get(code)}
        return status(code, json.dumps({"error": error}).encode())
    offered = body.get("tools") if body.get("tool_choice") != "none" else None
    if offered and (last["role"] != "tool" or body.get("tool_choice") not in (None, "auto")):
        events = calls(offered if last["role"] != "tool" else offered[::-1], body.get("tool_choice"))
        return lambda scene: scene.write(head(len(events)) + events)
    if found := SAY.search(asked):
        return speech(found[1])
    form = body.get("response_format", {})
    if form.get("type") == "json_schema":
        return speech(json.dumps(sample(form["json_schema"]["schema"])))
    return speech(f"The tool says {text_of(last)}." if last["role"] == "tool" else f"Read: {' | '.join(said)}")
