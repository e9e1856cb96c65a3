"""The loops of a rationale with tool calls: in its text, and by function calls; and the chat turn that uses them.

In a text: generate, stop at a call, insert the result, continue; show the text while it is streamed. By function calls the model
requests tools through its provider and reads results as messages; its text is not scanned. Messages are only appended, so that a
server's prefix cache stays valid.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias, cast

from taiwa.conversation.app import App, ReplyLayout
from taiwa.conversation.replies import find_delta, parse_reply
from taiwa.conversation.turn_prompt import reply_schema
from taiwa.flows.solve.rationale import (
    NO_CALL_LEFT,
    CallBudget,
    EndReason,
    ExecutedCall,
    InsertedKind,
    InsertedText,
    SolveLimits,
    TextPart,
)
from taiwa.flows.solve.tool_call_formats import (
    BlockScanner,
    CallMatch,
    Scanner,
    TaggedFormat,
    ToolCallFormat,
    describe_input,
    sanitize_result,
)
from taiwa.kernel.attachments import MAX_COUNT
from taiwa.kernel.effects import (
    Complete,
    GetCapabilities,
    HideOutput,
    Notify,
    Program,
    Watcher,
    WatchResult,
    complete_or_downgrade,
    is_hidden,
    notify,
    perform,
)
from taiwa.kernel.errors import (
    ConfigError,
    InputError,
    OutputValidationError,
    RefusalError,
    ToolError,
    UnsupportedError,
)
from taiwa.kernel.messages import (
    Capability,
    FinishReason,
    Message,
    Notice,
    Request,
    Response,
    Text,
    Thinking,
    ToolCall,
    ToolCallsInText,
    ToolResult,
    ToolSpec,
    Usage,
    assistant,
    file_texts,
    is_quoted,
    result_files,
    system,
    user,
    with_new_ids,
)
from taiwa.kernel.serialization import Json, read_exact_json
from taiwa.kernel.text import estimate_tokens
from taiwa.structured import OutputType, ParseOptions
from taiwa.structured.validators import FieldsValidator

TRANSCRIPT_CODES = ("call", "result", "stop", "cue")
"""The codes of notices whose text belongs to the transcript."""

CONTINUE = "Go on exactly where your text stops. Repeat none of it."

ENDINGS: Mapping[str, EndReason] = {
    "length": "length", "interrupted": "interrupted", "refusal": "refusal", "repetition": "repetition",
}  # fmt: skip

MAX_NOTICE_CHARS = 200

MIN_REPETITION = 8

OPEN, CLOSE = "<<", ">>"

MAX_CALL_CHARS = 1_400


MakeWatcher: TypeAlias = Callable[[], Watcher] | None


class RationaleBuilder:
    """The common state of both loops: text and insertions, calls, output tokens, and how the rationale ended."""

    def __init__(self, request: Request, calls: CallBudget, tool_format: ToolCallFormat, watch: MakeWatcher) -> None:
        self.base_request: Request = request
        self.calls = calls
        self.limits = calls.limits
        self.tool_format = tool_format
        self.watch = watch
        self.parts: list[TextPart | InsertedText] = []
        self.ending: EndReason | None = None
        self.final = ""
        self.is_answer = True
        """Whether the transcript is the answer."""
        self.output_tokens = 0
        self._is_limited = False

    @property
    def text(self) -> str:
        """The transcript so far."""
        return "".join(part.text for part in self.parts)

    @property
    def own_text(self) -> str:
        """What the model wrote after the last result, error or cue, without what it joined to that: nothing in it was inserted."""
        inserted = (at for at, part in enumerate(self.parts) if isinstance(part, InsertedText) and part.kind != "stop")
        last = max(inserted, default=-1)
        text = "".join(part.text for part in self.parts[last + 1 :])
        is_joined = last >= 0 and self.parts[last].text[-1:].strip()
        return re.sub(r"\A\S+", "", text) if is_joined else text

    def continue_after(self, cue: str, question: str, most: int) -> Program[Response]:
        """Let the model write one more line, as the continuation of a cue, or as the answer to a question; it becomes part of the text."""
        start = "" if not self.text or self.text.endswith("\n") else "\n"
        request = self.last_request(f"{start}{cue}", question)
        sampling = replace(request.sampling, max_tokens=most)
        request = replace(request, stop=("\n",) if request.prefix else (), sampling=sampling)
        response = yield from perform(Complete(request, HideOutput))
        self.count_tokens(response)
        inserted, text = f"{start}{cue}" if request.prefix else start, response.text.rstrip()
        self.parts.append(InsertedText(inserted, "cue"))
        self.add_text(text)
        yield from perform(Notify(Notice(inserted + text, code="cue", in_answer=self.is_answer)))
        return response

    def last_request(self, cue: str, question: str) -> Request:  # noqa: ARG002  (only one of the loops continues its text)
        """Make the request for one more line."""
        return replace(self.base_request, messages=(*self.messages, user(question)))

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages of the first request and the transcript."""
        return (*self.base_request.messages, assistant(self.text))

    def limit_tokens(self, request: Request) -> Request:
        """Limit a request to the tokens that are left."""
        if self.limits.max_tokens is None:
            return request
        left, limit = max(self.limits.max_tokens - self.output_tokens, 1), request.sampling.max_tokens
        self._is_limited = limit is None or left <= limit
        return replace(request, sampling=replace(request.sampling, max_tokens=left)) if self._is_limited else request

    def count_tokens(self, response: Response) -> None:
        """Count the output tokens of a response; estimate them if the server did not report them."""
        usage = response.usage or Usage(output_tokens=estimate_tokens(response.text + response.discarded))
        self.output_tokens += usage.output_tokens
        limit = self.limits.max_tokens
        if limit is not None and self.output_tokens >= limit and self.ending is None:
            self.ending = "tokens"

    def add_text(self, text: str) -> None:
        """Add text that the model wrote."""
        if text:
            self.parts.append(TextPart(text))

    def insert(self, text: str, kind: InsertedKind, *, hidden: str = "") -> Program[None]:
        """Insert text, and show it after `hidden`, the text of the model that was not shown yet."""
        self.parts.append(InsertedText(text, kind))
        yield from self.show(hidden + text, "call" if hidden else kind)

    def show(self, text: str, code: str) -> Program[None]:
        """Show a part of the transcript that the watchers do not show, unless the whole reply is hidden."""
        if text and not is_hidden(self.watch):
            yield from perform(Notify(Notice(text, code=code, in_answer=self.is_answer)))

    def finish(self, response: Response) -> None:
        """End the rationale like a response without a call.

        Raises:
            RefusalError: the model refused and wrote nothing at all.
        """
        if response.finish == "refusal" and not self.text.strip():
            raise RefusalError("the model refused to answer", request=self.base_request.digest)
        ending = ENDINGS.get(response.finish, "end")
        if self.ending in (None, "tokens"):
            is_own_limit = self._is_limited and 2 * self.output_tokens >= (self.limits.max_tokens or 0)
            self.ending = "tokens" if ending == "length" and is_own_limit else ending


class TextLoop(RationaleBuilder):
    """A rationale with tool calls in its text.

    With `prefill` the model continues its own text; otherwise each continuation is a new turn. With `stops` the server is
    asked to stop at the format's stop strings, but only with `prefill`: otherwise one could end a repetition too early.

    With `masks` only calls of the tools can be written, in the form of the format. A result ends its line with `ends_lines`, as in
    the worked examples, and always if it is an error or the continuation is a new turn: within the line, a small
    model joins digits and words of its own to the result, or ends there. With `words_first` masks keep a call from the beginning:
    small models begin every reply with one where no sentence leads to it.
    """

    def __init__(
        self,
        request: Request,
        calls: CallBudget,
        tool_format: ToolCallFormat,
        watch: MakeWatcher = None,
        *,
        prefill: bool,
        stops: bool,
        masks: bool = False,
        ends_lines: bool = False,
        words_first: bool = False,
    ) -> None:
        stop = tool_format.stops if prefill and stops and calls.specs else request.stop
        super().__init__(replace(request, stop=stop), calls, tool_format, watch)
        files = [*file_texts(request.files)]
        scanner = tool_format.scanner(calls.specs)
        if files:  # what a model repeats of an attached file calls nothing
            scanner = _Filtered(scanner, lambda seen, size: is_quoted(seen[-size:], files))
        self._scanner = scanner
        self._prefill = prefill
        self._masks = masks and bool(tool_format.opening and calls.specs)
        self._ends_lines = ends_lines
        self._words_first = words_first
        self._turns: list[str] = []
        self._false_stops = 0
        self._simulated_call: int | None = None
        if request.prefix:  # calls in it are already answered; a call at its end is continued
            self._add(request.prefix, None)
            rest = request.prefix
            while (call := self._scanner.feed(rest)) is not None:
                rest = rest[call.end :]

    def take_over(self, other: RationaleBuilder) -> Program[None]:
        """Continue with the text, calls and tokens of another loop whose server refused its next request."""
        self.parts, self.calls, self.output_tokens = other.parts, other.calls, other.output_tokens
        if not self._prefill and not self.text.endswith("\n"):
            yield from self.insert("\n", "result")
        self._turns.append(self.text)
        self._scanner.skip(self.text)

    def run(self) -> Program[None]:
        """Run the loop to its end."""
        while self.ending is None:
            request = self.limit_tokens(self.request())
            try:
                response = yield from perform(Complete(request, self._watch))
            except (UnsupportedError, InputError, ConfigError) as error:
                if request.constraint is self.base_request.constraint:
                    raise
                self._masks = False
                yield from notify(f"calls are checked afterwards: {error.message}", code="downgrade")
                continue
            self.count_tokens(response)
            if self._stopped_in_thinking(response):
                self.base_request = replace(self.base_request, stop=())
                yield from notify("stopped within hidden reasoning; asked again without stop strings", code="downgrade")
                continue
            call, behind = yield from self._take(response)
            if call is not None and self.ending is None:
                yield from self._answer(call, f"{behind}{response.discarded}")
        self._end_simulated_result("")

    def request(self) -> Request:
        """Make the request that continues the text so far; it begins with the messages of every request before it."""
        constraint = self.base_request.constraint
        if self._masks and constraint is None and not self._scanner.open:
            specs, own = tuple(self.calls.specs.values()), self.tool_format
            first = self._words_first and not self.text
            constraint = ToolCallsInText(specs, own.opening, own.close, after_prefix=True, words_first=first)
        if self._prefill:
            return replace(self.base_request, prefix=self.text, constraint=constraint)
        turns = (message for turn in self._turns for message in (assistant(turn), user(CONTINUE)))
        messages = (*self.base_request.messages, *turns)
        return replace(self.base_request, messages=messages, constraint=constraint)

    def last_request(self, cue: str, question: str) -> Request:
        """Make the request for one more line: with prefill, the model continues the cue."""
        if self._prefill:
            return replace(self.base_request, prefix=self.text + cue)
        return super().last_request(cue, question)

    def _watch(self) -> Watcher:
        return self._display(self._scanner, self.text)

    def _display(self, scanner: Scanner, known: str) -> Watcher:
        if is_hidden(self.watch):
            return Hidden(StopAtCall(scanner, known))
        live = LiveDisplay(StopAtCall(scanner, known))
        return live if self.watch is None else Through(live, self.watch())

    def _stopped_in_thinking(self, response: Response) -> bool:
        """Whether the server stopped at a stop string within hidden reasoning, which is not part of the text."""
        has_thinking = any(isinstance(part, Thinking) for part in response.message.parts)
        return bool(self.base_request.stop) and has_thinking and not response.text and response.finish == "stop"

    def _take(self, response: Response) -> Program[tuple[CallMatch | None, str]]:
        """Add the text of a response up to its first call; without a call, `ending` may be set.

        Returns the call and the text after it.
        """
        text = strip_repetition(response.text, self.text)
        text += self._unasked_calls(response, text)
        call = self._scanner.feed(text)
        if call is None:
            return (yield from self._take_whole(response, text)), ""
        self._add(text[: call.end], max(call.end - call.size, 0))
        yield from self.show(hidden_tail(text[: call.end], call.size), "call")
        return call, text[call.end :]

    def _unasked_calls(self, response: Response, text: str) -> str:
        """Return the function calls of a response as its format writes them: some servers read them out of the text by themselves."""
        if not self.calls.specs:
            return ""
        written = ""
        for call in response.message.tool_calls:
            shown = _input(call, self.calls.specs.get(call.name))
            written += self.tool_format.write_call(call.name, shown, f"{self.text}{text}{written}")
        return written

    def _take_whole(self, response: Response, text: str) -> Program[CallMatch | None]:
        """Add the text of a response without a call: it may have stopped at the end of one, which is not in the text."""
        self._add(text, len(text))
        hidden = hidden_tail(text, None) if self._scanner.open else ""
        stop = self._stop_met(response, text)
        if not stop:
            yield from self.show(hidden, "call")
            self.finish(response)
            return None
        call = self._scanner.feed(stop)
        self._false_stops += call is None
        if self._false_stops > self.limits.max_false_stops and self.ending is None:
            self.ending = "stops"
        inserted = stop if call is None else stop[: call.end]
        self._turns[-1] += inserted
        yield from self.insert(inserted, "stop", hidden=hidden)
        return call

    def _stop_met(self, response: Response, text: str) -> str:
        """Return the stop string at which the server stopped, '' for the end of the answer."""
        if response.finish != "stop":
            return ""
        if response.stop in self.tool_format.stops:
            return response.stop or ""
        close, stop = self.tool_format.close, self.base_request.stop
        if self._scanner.open or (stop and copy(self._scanner).feed(close)):
            return close
        # Many servers do not report where they stopped. An answer does not end with a space within a line.
        is_unreported = response.stop is None and close in stop
        return close if is_unreported and text[-1:] in (" ", "\t", "<") else ""

    def _answer(self, call: CallMatch, behind: str) -> Program[None]:
        """Execute a call and insert its result; `behind` is what the model wrote after the call."""
        if call.final:
            self.final, self.ending = call.input, "end"
            return
        if behind.strip():
            yield from notify(f"passed over: {behind.strip()[:MAX_NOTICE_CHARS]}", code="discarded")
        parse = partial(self.tool_format.parse_arguments, text=call.input)
        requested = self.calls.request(call.name, call.input, parse, behind)
        (executed,) = yield from self.calls.execute([requested])
        if executed is None:
            yield from self._insert_result(NO_CALL_LEFT, call.number)
        elif executed.result.origin == "model":
            self._simulated_call = len(self.calls.executed) - 1
        elif self.calls.ending == "repeat":
            yield from self._insert_result(NO_CALL_LEFT, call.number)
        elif self.calls.ending in (None, "calls"):
            yield from self._insert_result(executed.shown, call.number, is_error=bool(executed.result.error))
        if self.calls.ending in ("calls", "repeat") and self.ending is None:
            yield from self._ask_last(self.calls.ending)
        elif self.calls.ending is not None:
            self.ending = self.calls.ending

    def _insert_result(self, result: str, number: str, *, is_error: bool = True) -> Program[None]:
        """Insert a result after its call."""
        text = self.tool_format.write_result(result, number)
        goes_on = self._prefill and (text.endswith(CLOSE) or not (self._ends_lines or is_error))
        text += "" if goes_on or text.endswith("\n") else "\n"
        self._turns[-1] += text
        self._scanner.skip(text)
        yield from self.insert(text, "result")

    def _ask_last(self, ending: EndReason) -> Program[None]:
        """Request the end of the text once, without calls."""
        request, known = self.limit_tokens(replace(self.request(), stop=())), self.text
        response = yield from perform(Complete(request, lambda: self._display(BlockScanner({}), known)))
        self.count_tokens(response)
        self._add(strip_repetition(response.text, known), None)
        self.ending = ending

    def _add(self, text: str, call_start: int | None) -> None:
        """Add text of the model; `call_start` is where a call begins in it."""
        self._turns.append(text)
        self.add_text(text)
        self._end_simulated_result(text if call_start is None else text[:call_start])

    def _end_simulated_result(self, text: str) -> None:
        """Record what the model wrote instead of a result: the rest of the line."""
        if self._simulated_call is not None:
            line = text.strip().partition("\n")[0].strip()
            self.calls.set_model_result(self._simulated_call, line[:MAX_NOTICE_CHARS])
            self._simulated_call = None


class _Filtered:
    """A scanner that passes over calls which are data, as `is_data` says of the text up to the end of a call and the size of that."""

    def __init__(self, inner: Scanner, is_data: Callable[[str, int], bool], seen: Iterable[str] = ()) -> None:
        self._inner = inner
        self._is_data = is_data
        self._seen = [*seen]

    def __copy__(self) -> "_Filtered":
        return _Filtered(copy(self._inner), self._is_data, self._seen)

    @property
    def open(self) -> bool:
        """Whether the text so far ends inside a call that lacks only the format's `close`."""
        return self._inner.open

    def feed(self, text: str) -> CallMatch | None:
        """Read the next text up to the end of the first call; the caller feeds the rest again."""
        end = 0
        while (call := self._inner.feed(text[end:])) is not None:
            self._seen.append(text[end : end + call.end])
            end += call.end
            if not self._is_data("".join(self._seen), call.size):
                return replace(call, end=end)
        self._seen.append(text[end:])
        return None

    def skip(self, text: str) -> None:
        """Move past text that the program inserted, without scanning it."""
        self._inner.skip(text)
        self._seen.append(text)


class StopAtCall:
    """Watches a response: skips a repetition of `known`, shows the rest, and cuts it after the first call."""

    __slots__ = ("_at", "_held", "_known", "call", "scanner")

    def __init__(self, scanner: Scanner, known: str = "") -> None:
        self.scanner = copy(scanner)
        self.call: CallMatch | None = None
        self._known = _repeatable(known)
        self._held: str | None = ""
        self._at = 0

    def feed(self, text: str) -> WatchResult:
        """Show all new text, up to the end of the first call."""
        if self._held is not None:
            self._held += text
            if any(len(each) > len(self._held) and each.startswith(self._held) for each in self._known):
                return WatchResult()
            self._at = _repeated(self._held, self._known)
            text, self._held = self._held[self._at :], None
        self.call = call = self.scanner.feed(text)
        if call is not None:
            return WatchResult(text[: call.end], self._at + call.end)
        self._at += len(text)
        return WatchResult(text)

    def close(self) -> WatchResult:
        """Show text held back as a possible repetition, up to the end of the first call."""
        rest, self._held = self._held or "", None
        self.call = self.call or self.scanner.feed(rest)
        return WatchResult(rest if self.call is None else rest[: self.call.end])


class Hidden:
    """Cuts a response after its first call, and shows nothing of it."""

    __slots__ = ("_inner",)

    def __init__(self, inner: StopAtCall) -> None:
        self._inner = inner

    def feed(self, text: str) -> WatchResult:
        """Look for a call."""
        return WatchResult("", self._inner.feed(text).cut)

    def close(self) -> WatchResult:
        """Show nothing."""
        return WatchResult()


def strip_repetition(text: str, known: str) -> str:
    """Remove from the start of a text a repetition of the text that it continues: all of it, or its last line."""
    return text[_repeated(text, _repeatable(known)) :]


def _repeatable(known: str) -> tuple[str, ...]:
    whole = known.rstrip()
    return tuple(each for each in (whole, whole.rpartition("\n")[2]) if len(each) >= MIN_REPETITION)


def _repeated(text: str, known: tuple[str, ...]) -> int:
    return max((len(each) for each in known if text.startswith(each)), default=0)


class LiveDisplay:
    """Watches a response like `StopAtCall`, and holds back what may become a call, so that it can be shown as a call.

    Calls that are complete lines, as in ReAct, are shown as text.
    """

    __slots__ = ("_inner", "_wait", "is_unfinished")

    def __init__(self, inner: StopAtCall) -> None:
        self.is_unfinished = False
        """Whether the closed response ended in a call, or in one that lacks its end."""
        self._inner = inner
        self._wait = ""

    def feed(self, text: str) -> WatchResult:
        """Show all text that is certainly not part of a call."""
        seen = self._inner.feed(text)
        whole = self._wait + seen.show
        call = self._inner.call
        if seen.cut is not None and call is not None:
            self._wait = ""
            return WatchResult(whole.removesuffix(hidden_tail(whole, call.size)), seen.cut)
        end = _end_of_text(whole)
        self._wait = whole[end:]
        return WatchResult(whole[:end])

    def close(self) -> WatchResult:
        """Show text held back as a possible call; an unfinished call that lacks only its end is still held back."""
        whole = self._wait + self._inner.close().show
        call = self._inner.call
        self.is_unfinished = call is not None or self._inner.scanner.open
        if call is not None:
            return WatchResult(whole.removesuffix(hidden_tail(whole, call.size)))
        return WatchResult(whole[: _end_of_text(whole)] if self.is_unfinished else whole)


class Through:
    """Shows only what a second watcher shows of a rationale.

    If the response is cut, or ends in a call, it shows everything that was passed to the second watcher, which did not get a
    complete response.
    """

    __slots__ = ("_fed", "_first", "_second", "_shown")

    def __init__(self, first: LiveDisplay, second: Watcher) -> None:
        self._first = first
        self._second = second
        self._fed = ""
        self._shown = 0

    def feed(self, text: str) -> WatchResult:
        """Show what both watchers show."""
        seen = self._first.feed(text)
        show = self._show(seen.show)
        return WatchResult(show if seen.cut is None else show + self._fed[self._shown :], seen.cut)

    def close(self) -> WatchResult:
        """Show what both watchers held back."""
        show = self._show(self._first.close().show)
        rest = self._fed[self._shown :] if self._first.is_unfinished else self._second.close().show
        return WatchResult(show + rest)

    def _show(self, text: str) -> str:
        self._fed += text
        show = self._second.feed(text).show if text else ""
        self._shown += len(show)
        return show


def hidden_tail(text: str, size: int | None) -> str:
    """Return the end of the model's text that was not shown: a call of `size` characters; None for an unfinished one."""
    start = _end_of_text(text) if size is None else max(len(text) - size, 0)
    return text[start:] if text.startswith(OPEN, start) else ""


def _end_of_text(text: str) -> int:
    """Return the length of the start of a text that cannot become part of a call."""
    at = text.find(OPEN, text.rfind("\n") + 1)
    while at >= 0 and (closed := text.find(CLOSE, at)) >= 0:
        at = text.find(OPEN, closed + len(CLOSE))
    if at < 0:
        return len(text) - text.endswith(OPEN[0])
    return at if len(text) - at <= MAX_CALL_CHARS else len(text)


MAX_RESULT_CHARS = 5_000
"""A separate message may be longer than a line of a text."""

BY_MODEL = "no tool gives this: work the result out yourself"


class FunctionCallingLoop(RationaleBuilder):
    """A rationale with function calls; `tool_format` sets how its calls are shown in the transcript."""

    def __init__(
        self, request: Request, calls: CallBudget, tool_format: ToolCallFormat, watch: MakeWatcher = None
    ) -> None:
        super().__init__(replace(request, tools=tuple(calls.specs.values())), calls, tool_format, watch)
        self._more: tuple[Message, ...] = ()

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages of the first request and all that followed."""
        return (*self.base_request.messages, *self._more)

    def run(self) -> Program[None]:
        """Run the loop to its end."""
        while self.ending is None:
            # The tools stay in the last request too: they precede everything in a cached prefix.
            choice = "none" if self.calls.ending == "calls" else "auto"
            request = replace(self.base_request, messages=self.messages, tool_choice=choice)
            request = self.limit_tokens(request)
            response = with_new_ids((yield from perform(Complete(request, self.watch))), request)
            self.count_tokens(response)
            self.add_text(response.text)
            if not response.message.tool_calls or response.finish not in ("tool_calls", "stop"):
                last = Message("assistant", (*response.message.signed_thinking, Text(response.text)))
                self._more = (*self._more, last)
                self.finish(response)
                self.ending = self.calls.ending or self.ending  # the text after the last call does not change it
            elif self.ending is None:
                yield from self._answer(response)

    def _answer(self, response: Response) -> Program[None]:
        """Execute the calls of one response, and append the results in the order of the calls.

        The reasoning stays before its calls: servers refuse calls without their signed reasoning.
        """
        text, thinking, calls = response.text, response.message.signed_thinking, response.message.tool_calls
        if self.calls.ending == "calls":  # it calls a tool although the limit is reached
            self._more = (*self._more, Message("assistant", (*thinking, Text(text))))
            self.ending = "calls"
            return
        requested = ((call.name, call.arguments, partial(_arguments, call.arguments)) for call in calls)
        done = yield from self.calls.execute([self.calls.request(*each) for each in requested])
        results: list[ToolResult] = []
        left = MAX_COUNT - len(result_files(self._more))
        for call, executed in zip(calls, done, strict=True):
            files = () if executed is None else executed.result.attachments[: max(left, 0)]
            left -= len(files)
            if executed is None:
                result, error = NO_CALL_LEFT, "calls"
            elif executed.result.origin == "model":
                result, error = BY_MODEL, ""
            else:
                unseen = replace(executed.result, attachments=executed.result.attachments[len(files) :])
                result, error = unseen.as_text, executed.result.error
            results.append(ToolResult(
                sanitize_result(result, MAX_RESULT_CHARS) if result or not files else "", call.name, call.id,
                error=error, attachments=files,
            ))  # fmt: skip
            yield from self._show(call, sanitize_result(results[-1].as_text, MAX_RESULT_CHARS))
        said = (Text(text),) if text else ()
        self._more = (*self._more, Message("assistant", (*thinking, *said, *calls)), Message("tool", tuple(results)))
        if self.calls.ending not in (None, "calls"):
            self.ending = self.calls.ending

    def _show(self, call: ToolCall, result: str) -> Program[None]:
        """Insert a call and its result into the transcript as the format writes them."""
        text = self.text
        start = "" if not text or text.endswith("\n") else "\n"
        written = self.tool_format.write_call(call.name, _input(call, self.calls.specs.get(call.name)), text + start)
        yield from self.insert(start + written, "call")
        result = self.tool_format.write_result(result)
        yield from self.insert(result if result.endswith("\n") else f"{result}\n", "result")


def _arguments(text: str, spec: ToolSpec) -> dict[str, Json]:
    """Parse the arguments of a call, repaired where no guess is needed.

    Raises:
        ToolError: they are not a JSON object; the message says where.
    """
    expected = describe_input(spec)
    hint = f"give a JSON object: {expected if expected.startswith('{') else '{' + json.dumps(expected) + ': …}'}"
    try:
        data = read_exact_json(text or "{}")
        if isinstance(data, str):  # some relays write the arguments as JSON twice
            data = read_exact_json(data)
        if data == []:  # how PHP writes an empty object
            return {}
        if isinstance(data, dict):
            return data
        problem = "are not a JSON object"
    except (ValueError, RecursionError) as bad:
        where = f"{bad.msg} at line {bad.lineno} column {bad.colno}" if isinstance(bad, json.JSONDecodeError) else bad
        problem = f"are not JSON: {where}"
    try:  # in a fence, as Python writes them, or with a bracket too many
        found = OutputType(FieldsValidator(dict[str, Any])).parse(text, ParseOptions(guess=False)).value
        return cast("dict[str, Json]", found)
    except OutputValidationError:
        raise ToolError(f"the arguments {problem}", code="bad_arguments", hint=hint) from None


def _input(call: ToolCall, spec: ToolSpec | None) -> str:
    """Return the input of a call as written in text: the bare value of its only argument, or the complete object."""
    try:
        data = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        return " ".join(call.arguments.split())
    arguments = {name: part for name, part in cast("dict[str, Json]", data).items() if part is not None}
    values = tuple(arguments.values())
    if spec is not None and len(values) == 1 and isinstance(values[0], str):
        return " ".join(values[0].split())
    return json.dumps(arguments, ensure_ascii=False)


# --- the reply of a chat turn -----------------------------------------------------------------------------------------

LIMITS = SolveLimits(max_tokens=None)
"""The app limits the length of replies, not this flow."""

PARAGRAPH = "\n\n"

THINK_FIRST = "First think in text and use the tools. The reply in JSON is asked for after that."

WRITE_REPLY = "Now write the reply from this, only as JSON of the type that was asked for."

FINISH_REASONS: Mapping[EndReason, FinishReason] = {
    "end": "stop", "calls": "stop", "length": "length", "refusal": "refusal", "interrupted": "interrupted",
    "repeat": "interrupted", "stops": "interrupted", "tool": "interrupted", "repetition": "repetition",
}  # fmt: skip

WARNINGS: Mapping[EndReason, str] = {
    "calls": "no further tool call was allowed",
    "repeat": "the same tool call was requested too often",
    "stops": "the reply did not end",
}


def complete_with_tools(
    request: Request,
    tools: Sequence[ToolSpec],
    app: App,
    layout: ReplyLayout,
    watch: MakeWatcher,
    *,
    words_first: bool = False,
) -> Program[tuple[Response, tuple[ExecutedCall, ...]]]:
    """Request the reply of a turn in a layout, and return it with its calls; the response is like one without tools, and includes
    calls in its text.

    A request with a prefix continues the reply that begins with it; calls in the prefix are already answered. A model without
    function calling thinks and calls in a text before a reply in JSON, into which nothing can be inserted.

    Raises (when run):
        UnsupportedError: the request has a prefix, and the model calls functions or does not support prefill.
    """
    capabilities = yield from perform(GetCapabilities())
    calls = CallBudget(tools, LIMITS)
    if request.prefix and "tools" in capabilities:
        why = "a reply whose model calls functions cannot be made to begin with a text"
        raise UnsupportedError(why, capability="prefix")
    if request.prefix and "prefix" not in capabilities:
        raise UnsupportedError("this model cannot continue a prefix", capability="prefix")
    replies_in_json = app.output_type is not None or (bool(app.model_fields) and layout not in ("text+delta", "record"))
    shown = watch if is_hidden(watch) else _ReplyWatch(watch)
    native = FunctionCallingLoop(request, calls, TaggedFormat(), shown) if "tools" in capabilities else None
    if native is not None:
        native.is_answer = False
        try:
            yield from native.run()
        except UnsupportedError as error:
            if native.parts or error.capability != "tools":
                raise
            yield from notify(f"calls are read from the text: {error.message}", code="downgrade")
            native = None
    if native is not None:
        ending = native.ending or "end"
        texts = [part.text for part in native.parts if isinstance(part, TextPart)]
        # If the reply is JSON, only the last text is the reply; earlier text belongs to calls.
        text = PARAGRAPH.join(texts[-1:] if replies_in_json else texts)
    else:
        has_head = request.messages[0].role == "system"
        head = f"{request.messages[0].text}\n\n" if has_head else ""
        instructed = system(f"{head}{TaggedFormat().instructions(tools)}")
        thinking = replace(request, messages=(instructed, *request.messages[has_head:]))
        if replies_in_json:
            first = system(f"{instructed.text}\n\n{THINK_FIRST}")
            thinking = replace(thinking, messages=(first, *thinking.messages[1:]), constraint=None)
        form = _TaggedBeforeDelta() if app.model_fields and layout == "text+delta" else TaggedFormat()
        prefill, stops = "prefix" in capabilities, "stop" in capabilities
        masks = can_mask(capabilities) and not isinstance(form, _TaggedBeforeDelta)
        loop = TextLoop(
            thinking, calls, form, watch, prefill=prefill, stops=stops, masks=masks, words_first=words_first
        )
        loop.is_answer = not replies_in_json
        yield from loop.run()
        ending, text = loop.ending or "end", loop.text
        thought = parse_reply(app, text, layout) if replies_in_json and not calls.executed else None
        if replies_in_json and (thought is None or thought.delta is None or thought.repairs or thought.missing):
            constraint = reply_schema(app, layout) if "json_schema" in capabilities else request.constraint
            worked_out = (*request.messages, assistant(text), user(WRITE_REPLY))
            asked = replace(request, messages=worked_out, constraint=constraint)
            return (yield from complete_or_downgrade(asked, watch)), tuple(calls.executed)
    if ending in WARNINGS:
        yield from notify(WARNINGS[ending], code="turn", warning=True)
    return Response(assistant(text), FINISH_REASONS.get(ending, "stop")), tuple(calls.executed)


def can_mask(capabilities: frozenset[Capability]) -> bool:
    """Whether calls in a text can be masked at no cost: a server, which calls functions too, compiles a grammar for each request."""
    return {"grammar", "local"} <= capabilities and "tools" not in capabilities


class _TaggedBeforeDelta(TaggedFormat):
    """Calls in the text of a reply: everything in its state delta is data."""

    def scanner(self, names: Iterable[str]) -> Scanner:
        """Make a scanner for calls before the delta."""
        return _Filtered(super().scanner(names), lambda seen, _: find_delta(seen, ()) is not None)


class _ReplyWatch:
    """Creates the watchers of one reply in several responses: each but the first starts a paragraph."""

    def __init__(self, make: Callable[[], Watcher] | None) -> None:
        self.has_text = False
        self._make = make

    def __call__(self) -> Watcher:
        """Watch the next response."""
        return _ResponseWatch(self, None if self._make is None else self._make())


class _ResponseWatch:
    """Watches one response."""

    def __init__(self, reply: _ReplyWatch, inner: Watcher | None) -> None:
        self._reply = reply
        self._inner = inner
        self._begun = False

    def feed(self, text: str) -> WatchResult:
        """Show what the app's watcher shows."""
        return self._show(text if self._inner is None else self._inner.feed(text).show)

    def close(self) -> WatchResult:
        """Show what was held back."""
        shown = self._show("" if self._inner is None else self._inner.close().show)
        self._reply.has_text |= self._begun
        return shown

    def _show(self, text: str) -> WatchResult:
        lead = PARAGRAPH if text and not self._begun and self._reply.has_text else ""
        self._begun = self._begun or bool(text)
        return WatchResult(lead + text)
