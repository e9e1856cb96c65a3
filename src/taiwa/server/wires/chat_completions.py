"""Chat Completions (`POST /v1/chat/completions`), with the fields of vLLM and llama.cpp for constraints."""

import re
import time
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from functools import partial
from secrets import token_hex
from typing import cast

from starlette.requests import Request
from starlette.responses import Response

from taiwa.conversation.app import AnswerOptions, RequestParts
from taiwa.kernel.attachments import MAX_COUNT, Attachment
from taiwa.kernel.messages import (
    Choice,
    Constraint,
    FinishReason,
    Grammar,
    JsonSchema,
    Message,
    Notice,
    Part,
    Regex,
    Role,
    Sampling,
    Text,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
)
from taiwa.kernel.messages import Response as ModelResponse
from taiwa.kernel.serialization import Json, item_at, items_at, parse_json, text_at, text_to_json, to_json
from taiwa.models.http_api.provider_interface import EFFORTS
from taiwa.server.http_responses import ApiError, SendNow, error_to_json, event, invalid
from taiwa.server.request import Fields, caller_of, interpret, read_body, state_of
from taiwa.server.runs import LiveRun, PublishedEvent
from taiwa.server.wire_interface import Route, Wire
from taiwa.server.wires.answer_request import (
    MOST_LOGPROBS,
    AnswerRequest,
    Extend,
    answer,
    checked_choice,
    checked_tools,
    pass_on,
    read_base64,
    read_extension,
    read_history,
    read_penalties,
    read_stops,
    remembered,
    response_of,
    unsupported_tool,
    write_logprobs,
)
from taiwa.server.wires.files import FILE_PARTS, with_files
from taiwa.sessions.commit_turn import TurnResult

ONLY_TEXT = frozenset({"role", "content"})
SAID_BY: Mapping[str, Role] = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
ROLES = ("system", "developer", "user", "assistant", "tool", "function")
DATA_URL = re.compile(r"data:[\w.+-]+/[\w.+-]+(?:;[\w-]+=[^;,]*)*;base64,")
PIECE_END = b'},"logprobs":null,"finish_reason":null}]'

READ = frozenset(
    """model messages stream stream_options n stop max_tokens max_completion_tokens temperature top_p seed tools tool_choice
    response_format logprobs top_logprobs reasoning_effort structured_outputs grammar json_schema frequency_penalty
    presence_penalty logit_bias
    modalities functions function_call guided_json guided_regex guided_choice guided_grammar include taiwa continue_final_message""".split()
)
IGNORED = frozenset(
    """user metadata store safety_identifier prompt_cache_key prompt_cache_options prompt_cache_retention moderation
    cache_prompt add_generation_prompt skip_special_tokens include_reasoning reasoning_format keep_alive""".split()
)
"""Fields about serving and users, which are not passed on; docs/server.md lists them."""
HINTS = frozenset(
    """service_tier parallel_tool_calls prediction verbosity top_k min_p typical_p repetition_penalty repeat_penalty
    chat_template_kwargs reasoning enable_thinking""".split()
)
"""Fields that common clients send to every server: they are passed on to those that take them, and omitted for others."""
KNOWN = READ | IGNORED | HINTS
UNSUPPORTED = frozenset({"audio", "web_search_options"})

FINISH: Mapping[FinishReason, str] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "refusal": "content_filter",
    "cut": "stop",
    "interrupted": "length",
    "repetition": "length",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest(AnswerRequest):
    """A parsed request; `top_logprobs` is None if none are requested."""

    include_usage: bool
    top_logprobs: int | None
    calls_functions: bool = False
    """Whether the client has the older fields `functions` and `function_call` in place of tools."""


def read_request(body: Fields, most_messages: int, most_choices: int) -> ChatRequest:
    """Read a request.

    Raises:
        ApiError: a field is missing, unknown, or has a wrong type or value.
    """
    fields = body.others(KNOWN, UNSUPPORTED) | read_penalties(body)
    if (bias := body.object("logit_bias")) is not None and bias.data:
        fields["logit_bias"] = bias.data
    if any(each != "text" for each in body.texts("modalities")):
        raise invalid("modalities", "this server writes text only", "unsupported_parameter")
    system, messages = read_history(body, read_messages, most_messages)
    stream_options = body.object("stream_options")
    streams = body.flag("stream")
    if stream_options is not None and not streams:
        raise invalid("stream_options", "stream_options is allowed only with stream: true", "invalid_value")
    top_logprobs = None
    if body.flag("logprobs"):
        top_logprobs = body.count("top_logprobs", 0, MOST_LOGPROBS) or 0
    elif body.count("top_logprobs", 0, MOST_LOGPROBS):
        raise invalid("top_logprobs", "top_logprobs requires logprobs: true", "invalid_value")
    body = with_tools_for_functions(body)
    tool_choice, tools = read_tool_choice(body, read_tools(body))
    options = AnswerOptions(
        system=system or None,
        parts=RequestParts(
            tools,
            tool_choice,
            read_constraint(body),
            read_stops(body, "stop"),
            0 if top_logprobs is None else max(top_logprobs, 1),
        ),
        sampling=Sampling(
            body.number("temperature", 0, 2),
            body.number("top_p", 0, 1),
            body.count("max_completion_tokens", 1) or body.count("max_tokens", 1),
            body.count("seed", -(2**63), 2**63),
            read_effort(body, "reasoning_effort"),
        ),
    )
    return ChatRequest(
        model=body.text("model"),
        messages=messages,
        options=options,
        choices=body.count("n", 1, most_choices) or 1,
        streams=streams,
        include_usage=stream_options is not None and stream_options.flag("include_usage"),
        top_logprobs=top_logprobs,
        extension=read_extension(body),
        passed=pass_on(fields, body, HINTS),
        calls_functions="functions" in body.data,
        prefills=body.flag("continue_final_message") or Fields.of(body.items("messages")[-1]).flag("prefix"),
    )


def read_effort(body: Fields, name: str) -> str:
    """Read the reasoning effort; "" if the request has none."""
    return "" if body.data.get(name) is None else body.choice(name, EFFORTS, "")


def with_tools_for_functions(body: Fields) -> Fields:
    """Return a body with `tools` and `tool_choice` for the older fields `functions` and `function_call`."""
    functions = list(body.objects("functions"))
    if not functions:
        return body
    given = body.data.get("function_call")
    choice: Json = {"type": "function", "function": given} if isinstance(given, dict) else given
    tools: list[Json] = [{"type": "function", "function": each.data} for each in functions]
    return Fields({**body.data, "tools": tools, "tool_choice": choice}, body.path)


def read_messages(body: Fields) -> tuple[Message, ...]:
    """Read the messages of a request.

    Raises:
        ApiError: one has an unknown role or part, or is a result without a call.
    """
    names: dict[str, str] = {}
    messages: list[Message] = []
    for index, data in enumerate(body.items("messages")):
        if isinstance(data, dict) and data.keys() == ONLY_TEXT:  # most messages of a long history
            said, text = data["role"], data["content"]
            if isinstance(said, str) and isinstance(text, str) and (kind := SAID_BY.get(said)):
                messages.append(Message(kind, (Text(text),)))
                continue
        item = Fields.of(data, f"{body.at('messages')}[{index}]")
        role = item.choice("role", ROLES, "")
        if role in ("system", "developer"):
            messages.append(Message("system", (Text(read_content(item)),)))
        elif role == "user":
            messages.append(Message("user", (*read_files(item), Text(read_content(item)))))
        elif role == "assistant":
            messages.append(_read_assistant(item, names))
        else:
            call = item.text("tool_call_id", item.optional_text("name") or "")
            name, files = names.get(call, ""), read_files(item)
            messages.append(Message("tool", (ToolResult(read_content(item), name, call, attachments=files),)))
    return tuple(messages)


def _read_assistant(item: Fields, names: dict[str, str]) -> Message:
    parts: list[Part] = []
    text = read_content(item, optional=True) or item.optional_text("refusal") or ""
    if text:
        parts.append(Text(text))
    for call in item.objects("tool_calls"):
        function = call.required("function")
        id_, name = call.text("id", ""), function.text("name")
        names[id_] = name
        parts.append(ToolCall(name, function.text("arguments", "{}"), id_))
    if (called := item.object("function_call")) is not None:  # its result names the function
        name = called.text("name")
        names[name] = name
        parts.append(ToolCall(name, called.text("arguments", "{}"), name))
    return Message("assistant", tuple(parts) or (Text(""),))


def read_files(item: Fields) -> tuple[Attachment, ...]:
    """Read the images and files of a message; only data URLs, since no address is fetched."""
    if not isinstance(item.data.get("content"), list):
        return ()
    files: list[Attachment] = []
    for part in item.objects("content"):
        kind, name = part.data.get("type"), ""
        if kind in ("image_url", "input_image"):
            holder = part.object("image_url") if isinstance(part.data.get("image_url"), dict) else None
            url, path = (
                (part.text("image_url"), part.at("image_url"))
                if holder is None
                else (holder.text("url"), holder.at("url"))
            )
        elif kind in ("file", "input_file"):
            holder = part.object("file") or part
            url, path, name = holder.text("file_data"), holder.at("file_data"), holder.text("filename", "")
        else:
            continue
        files.append(read_data_url(url, path, name))
    if len(files) > MAX_COUNT:
        raise invalid(item.at("content"), f"a message can have at most {MAX_COUNT} files")
    return tuple(files)


def read_data_url(url: str, path: str, name: str = "") -> Attachment:
    """Read a file from a data URL in Base64.

    Raises:
        ApiError: it is an address, not Base64, or a file of an unsupported type.
    """
    match = DATA_URL.match(url)
    if match is None:
        raise invalid(
            path, f"{path} must be a data URL with Base64 data; addresses are not fetched", "invalid_image_url"
        )
    return read_base64(url[match.end() :], path, name)


def read_content(item: Fields, *, optional: bool = False) -> str:
    """Read the content of a message: a text, or an array of text parts, which are joined."""
    content = item.data.get("content")
    if content is None and optional:
        return ""
    if not isinstance(content, list):
        return item.text("content")
    texts: list[str] = []
    for part in item.objects("content"):
        kind = part.text("type")
        if kind in ("text", "input_text", "output_text"):
            texts.append(part.text("text"))
        elif kind in FILE_PARTS and item.data.get("role") in ("user", "tool"):
            continue
        elif kind == "refusal":
            texts.append(part.text("refusal"))
        else:
            raise part.error("type", f"{kind[:40]!r} is not supported; send text", "unsupported_content")
    return "".join(texts)


@remembered
def read_tools(body: Fields) -> tuple[ToolSpec, ...]:
    """Read the function tools of a request."""
    tools: list[ToolSpec] = []
    for item in body.objects("tools"):
        function = item.object("function")
        if item.text("type") != "function" or function is None:
            raise unsupported_tool(item, "function")
        tools.append(read_function(function))
    return checked_tools(tools, body.at("tools"))


def read_function(function: Fields) -> ToolSpec:
    """Read the name, description and parameters of a function."""
    empty: dict[str, Json] = {"type": "object", "properties": {}}
    schema = function.schema("parameters") if function.data.get("parameters") else empty
    return ToolSpec(function.text("name"), function.text("description", ""), schema)


def read_tool_choice(body: Fields, tools: tuple[ToolSpec, ...]) -> tuple[str, tuple[ToolSpec, ...]]:
    """Read `tool_choice`: a word, the name of a function, or some of the tools; return it with the tools that may be called."""
    given = body.data.get("tool_choice")
    if isinstance(given, dict):
        item = Fields(given, "tool_choice")
        kind = item.choice("type", ("function", "allowed_tools"), "function")
        holder = item.object(kind) or item  # the Responses protocol has the fields right here
        if kind == "function":
            return checked_choice(holder.text("name"), tools), tools
        listed = ((tool.object("function") or tool).text("name") for tool in holder.objects("tools"))
        names = {checked_choice(name, tools) for name in listed}
        if not names:
            raise holder.missing("tools")
        choice = holder.choice("mode", ("auto", "required"), "auto")
        return choice, tuple(tool for tool in tools if tool.name in names)
    choice = body.choice("tool_choice", ("auto", "none", "required"), "auto")
    if choice == "required" and not tools:
        raise invalid("tool_choice", "tool_choice is allowed only with tools", "invalid_value")
    return choice if tools else "auto", tools


def read_constraint(body: Fields) -> Constraint | None:
    """Read the constraint of an answer: `response_format`, vLLM's `structured_outputs`, llama.cpp's `grammar` or `json_schema`.

    Raises:
        ApiError: there are several, or one cannot be read.
    """
    found: dict[str, Constraint] = {}
    if (form := body.object("response_format")) is not None and (constraint := read_format(form)) is not None:
        found["response_format"] = constraint
    for name in ("json", "regex", "choice", "grammar"):  # vLLM's older names
        if (guide := body.data.get(f"guided_{name}")) is not None:
            found[f"guided_{name}"] = _read_structured_outputs(Fields({name: guide}, f"guided_{name}"))
    if (outputs := body.object("structured_outputs")) is not None:
        found["structured_outputs"] = _read_structured_outputs(outputs)
    if grammar := body.optional_text("grammar"):
        found["grammar"] = Grammar(grammar)
    if body.data.get("json_schema") is not None:
        found["json_schema"] = JsonSchema(body.schema("json_schema"))
    first, *others = found.values() or (None,)
    if any(each != first for each in others):  # guidance sends one grammar under both names of vLLM
        raise invalid(next(iter(found)), f"give one of {', '.join(found)}, not {len(found)}", "invalid_value")
    return first


ANY_OBJECT = JsonSchema({"type": "object", "additionalProperties": True}, "object")
"""Any JSON object, so written that a server or a model that takes a type literally does not read the empty object."""


def read_format(form: Fields) -> Constraint | None:
    """Read `response_format`: text, any JSON object, or JSON matching a schema, which llama.cpp and others take beside `json_object`."""
    kind = form.choice("type", ("text", "json_object", "json_schema"), "text")
    if kind == "json_object":
        return JsonSchema(form.schema("schema"), "object") if form.data.get("schema") else ANY_OBJECT
    if kind == "text":
        return None
    holder = form.object("json_schema") or form  # the Responses protocol has the fields of the schema at this level
    return JsonSchema(holder.schema("schema"), holder.text("name", "answer"))


def _read_structured_outputs(outputs: Fields) -> Constraint:
    outputs.check_names(
        {"json", "regex", "choice", "grammar", "json_object", "whitespace_pattern", "disable_any_whitespace"},
        {"structural_tag"},
    )
    given = [name for name in ("json", "regex", "choice", "grammar", "json_object") if outputs.data.get(name)]
    if len(given) != 1:
        raise invalid(outputs.path, "structured_outputs takes one of json, regex, choice and grammar", "invalid_value")
    if given == ["json"]:
        data = outputs.data["json"]
        if isinstance(data, str):
            try:
                data = parse_json(data)
            except ValueError:
                raise invalid(outputs.at("json"), "structured_outputs.json is not JSON") from None
        return JsonSchema(Fields({"json": data}, outputs.path).schema("json"))
    if given == ["regex"]:
        return Regex(outputs.text("regex"))
    if given == ["choice"]:
        return Choice(outputs.texts("choice"))
    if given == ["grammar"]:
        return Grammar(outputs.text("grammar"))
    return ANY_OBJECT


async def create(request: Request) -> Response:
    """Answer a request, as one object or as a stream; the answer is cancelled if the client disconnects."""
    state = state_of(request)
    state.runs.check_room(caller_of(request))
    limits = state.options.limits
    body = await with_files(request, await read_body(request), "messages")
    asked = await interpret(request, partial(read_request, body, limits.messages, limits.choices))
    return await answer(request, asked, _Reply(asked))


class _Reply:
    """Writes the answers of one request."""

    protocol = "Chat Completions"

    def __init__(self, asked: ChatRequest) -> None:
        self._asked = asked
        self.id = f"chatcmpl-{token_hex(12)}"
        self._created = int(time.time())
        self._opening = b""
        self._fingerprint: dict[str, Json] = {}

    def whole(self, results: list[TurnResult]) -> dict[str, Json]:
        """Return the whole response."""
        choices: list[Json] = []
        for index, result in enumerate(results):
            response = response_of(result)
            message: dict[str, Json] = {
                "role": "assistant",
                "content": None if response.stop == "refusal" else result.continuation,
                "refusal": None,
                "annotations": self._read_extra(response),
            }
            message |= _thinking(response)
            calls = write_calls(response)
            if calls:
                message |= {"content": result.continuation or None, **self._called(calls)}
            if response.finish == "refusal":
                message["refusal"] = result.continuation
            end: dict[str, Json] = {"logprobs": self._logprobs(response), "finish_reason": self._ending(response)}
            choices.append({"index": index, "message": message, **end})
        whole = self._head("chat.completion")
        whole["choices"] = choices
        if (usage := write_usage(results)) is not None:
            whole["usage"] = usage
        return whole

    async def stream(self, run: LiveRun, extend: Extend, send_now: SendNow) -> AsyncGenerator[bytes]:
        """Yield the chunks of the response."""
        results: dict[int, TurnResult] = {}
        begun: set[int] = set()
        thinking: set[int] = set()
        written: set[int] = set()

        def take(index: int, event: PublishedEvent) -> bool:
            return isinstance(event, TextDelta) and index in written and send_now(self._text(index, event))

        out = b""
        async for each in run.follow(take=take):
            if isinstance(each.event, Notice):
                continue
            if isinstance(each.event, ApiError):
                yield event(error_to_json(each.event))
                return
            if each.index not in begun:
                begun.add(each.index)
                out = self._chunk(each.index, {"role": "assistant", "content": "", "refusal": None})
            if isinstance(each.event, TextDelta):
                written.add(each.index)
                out += self._text(each.index, each.event)
            elif isinstance(each.event, ThinkingDelta):
                if each.event.text:
                    thinking.add(each.index)
                    out += self._piece(each.index, b"reasoning_content", each.event.text)
            else:
                results[each.index] = each.event
                out += self._end(
                    each.index, each.event, has_text=each.index in written, has_thought=each.index in thinking
                )
            if out and len(results) < len(run.completions):
                yield out
                out = b""
        ordered = [results[index] for index in sorted(results)]
        extension = await extend(ordered)
        if self._asked.include_usage or extension:
            chunk = self._head("chat.completion.chunk")
            chunk["choices"] = []
            if self._asked.include_usage:
                chunk["usage"] = write_usage(ordered)
            out += event(chunk | extension)
        yield out + b"data: [DONE]\n\n"

    def _end(self, index: int, result: TurnResult, *, has_text: bool, has_thought: bool) -> bytes:
        """Write the chunks at the end of an answer, including everything that was not streamed."""
        out, response = b"", response_of(result)
        if result.continuation and not has_text:
            out = self._text(index, TextDelta(result.continuation, response.stop == "refusal"))
        more: dict[str, Json] = {} if has_thought else dict(_thinking(response))
        if response.finish == "refusal" != response.stop:  # of a filter: its text was streamed as content
            more["refusal"] = result.continuation
        if annotations := self._read_extra(response):
            more["annotations"] = annotations
        if calls := write_calls(response):
            more |= self._called([{"index": at, **cast("dict[str, Json]", call)} for at, call in enumerate(calls)])
        logprobs = self._logprobs(response)
        if more or logprobs is not None:
            out += self._chunk(index, more, logprobs=logprobs)
        return out + self._chunk(index, {}, finish=self._ending(response))

    def _chunk(self, index: int, delta: dict[str, Json], *, logprobs: Json = None, finish: str | None = None) -> bytes:
        chunk = self._head("chat.completion.chunk")
        chunk["choices"] = [{"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": finish}]
        if self._asked.include_usage:
            chunk["usage"] = None
        return event(chunk)

    def _text(self, index: int, delta: TextDelta) -> bytes:
        return self._piece(index, b"refusal" if delta.refuses else b"content", delta.text)

    def _read_extra(self, response: ModelResponse) -> list[Json]:
        """Take the fingerprint of the model's server for what is written from here on, and return the annotations of an answer."""
        if fingerprint := text_at(response.extra, "system_fingerprint"):
            self._fingerprint = {"system_fingerprint": fingerprint}
        return [_annotation(each) for each in items_at(response.extra, "annotations")]

    def _piece(self, index: int, name: bytes, text: str) -> bytes:
        """Write the chunk of a piece, which is frequent: `_chunk` with little left to encode."""
        if not self._opening:
            self._opening = b"data: " + to_json(self._head("chat.completion.chunk"))[:-1] + b',"choices":[{"index":'
        ending = PIECE_END + (b',"usage":null}\n\n' if self._asked.include_usage else b"}\n\n")
        return b'%b%d,"delta":{"%b":%b%b' % (self._opening, index, name, text_to_json(text), ending)

    def _head(self, kind: str) -> dict[str, Json]:
        return {
            "id": self.id,
            "object": kind,
            "created": self._created,
            "model": self._asked.model,
            **self._fingerprint,
        }

    def _called(self, calls: list[Json]) -> dict[str, Json]:
        """Write calls; a client of functions gets the first one."""
        return (
            {"function_call": item_at(calls[0], "function")} if self._asked.calls_functions else {"tool_calls": calls}
        )

    def _ending(self, response: ModelResponse) -> str:
        reason = _finish(response)
        return "function_call" if self._asked.calls_functions and reason == "tool_calls" else reason

    def _logprobs(self, response: ModelResponse) -> Json:
        if self._asked.top_logprobs is None or not response.decoding.logprobs:
            return None
        return {"content": write_logprobs(response, self._asked.top_logprobs), "refusal": None}


def write_calls(response: ModelResponse) -> list[Json]:
    """Write the tool calls of a response."""
    return [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments or "{}"},
        }
        for call in response.message.tool_calls
    ]


def write_usage(results: list[TurnResult]) -> Json:
    """Write the usage of all calls of the answers; None, not zero, if one of them is unknown."""
    if not results or any(each.spent.calls_without_usage for each in results):
        return None
    used = sum((each.usage for each in results), Usage())
    return {
        "prompt_tokens": used.input_tokens,
        "completion_tokens": used.output_tokens,
        "total_tokens": used.input_tokens + used.output_tokens,
        "prompt_tokens_details": {"cached_tokens": used.cache_read_tokens},
        "completion_tokens_details": {"reasoning_tokens": used.reasoning_tokens},
    }


def _annotation(flat: Json) -> Json:
    """Write an annotation, whose fields this protocol has in a member that its type names."""
    if not isinstance(flat, dict) or len(flat) < 2:
        return flat
    kind = text_at(flat, "type")
    return {"type": kind, kind: {name: part for name, part in flat.items() if name != "type"}}


def _thinking(response: ModelResponse) -> dict[str, Json]:
    text = "".join(part.text for part in response.message.thinking)
    return {"reasoning_content": text} if text else {}


def _finish(response: ModelResponse) -> str:
    if response.stop == "refusal":  # the SDK of OpenAI raises an error for content_filter
        return "stop"
    return "tool_calls" if response.message.tool_calls and response.finish == "stop" else FINISH[response.finish]


wire = Wire("chat_completions", (Route("/v1/chat/completions", create, repeats=True),), error_to_json)
