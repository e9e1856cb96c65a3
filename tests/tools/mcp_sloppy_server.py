"""A server that means well and does not keep to the protocol, written by hand so that it can."""

import json
import sys

sys.set_int_max_str_digits(0)
RESULTS = {
    "no_content": {"structuredContent": {"a": 1}},
    "nothing": {},
    "null": {"content": None},
    "words": {"content": "plain"},
    "list": {"content": [], "structuredContent": [1, 2]},
    "video": {"content": [{"type": "video", "data": "x"}, {"type": "text", "text": "hello"}]},
    "blocks": {"content": [5, {"type": "text", "text": "ok"}]},
    "link": {"content": [{"type": "resource_link", "uri": "file:///notes", "name": "notes"}]},
    "summary": {"content": [{"type": "text", "text": "3 found"}], "structuredContent": {"items": [1, 2, 3]}},
    "for_model": {
        "content": [{"type": "text", "text": "all of it", "annotations": {"audience": ["assistant"]}}],
        "structuredContent": {"items": [1, 2, 3]},
    },
    "repeated": {"content": [{"type": "text", "text": '{"a": 1}'}], "structuredContent": {"a": 1}},
    "half": {"content": [{"type": "text", "text": "cut \ud83d"}], "structuredContent": {"\ud83d": "\ude00"}},
    "digits": {"content": [], "structuredContent": {"n": 10**6_000}},
    "no_number": {"content": [], "structuredContent": {"n": float("nan")}},
    "long": {"content": [{"type": "text", "text": "x" * 500_000}]},
}
ANSWERS: dict[str, dict[str, object]] = {
    "result_list": {"result": [1]},
    "result_null": {"result": None},
    "error_text": {"error": "out of order"},
    "error_code": {"error": {"code": "E1", "message": "out of paper"}},
    "error_of_its_own": {"error": {"code": -32000, "message": "out of ink"}},
    "neither": {},
}
TOOLS: list[object] = [{"name": name, "inputSchema": {"type": "object"}} for name in [*RESULTS, *ANSWERS]]
BAD = [
    {"name": "no_schema"},
    {"inputSchema": {"type": "object"}},
    {"name": "text_schema", "inputSchema": "x"},
    {"name": "list_schema", "inputSchema": {"type": "array"}},
    {"name": "numbered", "description": 5, "inputSchema": {"type": "object"}},
    7,
]

for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    answer: dict[str, object] = {"jsonrpc": "2.0", "id": message["id"]}
    match message["method"]:
        case "initialize":
            version = message["params"]["protocolVersion"]
            about = {"name": "sloppy", "version": "1"}
            answer["result"] = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
        case "tools/list":
            answer["result"] = {"tools": TOOLS + BAD if len(sys.argv) > 1 else TOOLS}
        case "tools/call":
            name = message["params"]["name"]
            answer |= ANSWERS[name] if name in ANSWERS else {"result": RESULTS[name]}
        case _:
            answer["error"] = {"code": -32601, "message": "method not found"}
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
