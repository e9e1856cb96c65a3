"""Answers without worked examples and without tools, led on by cues alone.

After zero-shot chain-of-thought (Kojima et al., NeurIPS 2022): a first cue has the model reason, and a second, behind what it
wrote, has it name the answer. They are what reasoning with tools is compared with.
"""

from dataclasses import replace

from taiwa.conversation.derive import tokens_of
from taiwa.flows.numbers import last_number
from taiwa.flows.rationale import Ending, Rationale, Said, Spliced, Way
from taiwa.flows.reason import ways_for
from taiwa.kernel.effects import Abilities, Complete, Program, perform, tell
from taiwa.kernel.errors import RefusalError
from taiwa.kernel.values import Request, Sampling, assistant, user

__all__ = ["STEP_BY_STEP", "THEREFORE", "zero_shot"]

STEP_BY_STEP = "Let's think step by step."
THE_ANSWER = "The answer (arabic numerals) is"
THEREFORE = "Therefore, the answer (arabic numerals) is"
SHORTEST = 20
"""Tokens that an answer may take, however long the thought before it was."""
ENDINGS: dict[str, Ending] = {"length": "length", "interrupted": "interrupted", "refusal": "refusal"}


def zero_shot(
    question: str,
    *,
    steps: bool = True,
    sampling: Sampling = Sampling(),
    tokens: int | None = None,
    way: Way | None = None,
) -> Program[Rationale]:
    """Answer a question with a number: after thinking step by step, or at once.

    A server that can continue an answer gets the cues as its start; another one, or any for the `way` "stop", reads them in
    the conversation. `tokens` bounds what is thought; the answer may take a few more.

    Raises (when run):
        RefusalError: the model refused at once.
        UnsupportedError: the `way` is "prefill", and the model cannot.
    """
    chosen, *_ = ways_for(way, (yield from perform(Abilities())), natively=False)
    course = _Course(question, sampling, tokens, chosen == "prefill")
    ending: Ending = "end"
    if steps:
        yield from course.cue(STEP_BY_STEP)
        ending = yield from course.ask()
    if ending == "end":
        yield from course.cue(("\n" if steps else "") + (THEREFORE if steps else THE_ANSWER))
        ending = yield from course.ask()
    answer = course.number() if ending == "end" else ""
    return Rationale(tuple(course.parts), (), ending, chosen, answer, "prompt" if answer else "none")


class _Course:
    """What was said so far, and the request that goes on from there."""

    def __init__(self, question: str, sampling: Sampling, tokens: int | None, in_place: bool) -> None:
        self.parts: list[Said | Spliced] = []
        self._asked = Request((user(question),), sampling=sampling)
        self._left = tokens
        self._in_place = in_place
        self._cue = ""

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts)

    def cue(self, text: str) -> Program[None]:
        """Lead the model on."""
        shown = text if self._in_place else f"{text} "
        self.parts.append(Spliced(shown, "cue"))
        yield from tell(shown, code="cue")
        self._cue = text.strip()

    def ask(self) -> Program[Ending]:
        """Ask for what follows the last cue, and tell how it ended."""
        response = yield from perform(Complete(self._bounded(self._request())))
        if response.finish == "refusal" and not response.text.strip() and len(self.parts) == 1:
            raise RefusalError("the model refused to answer", request=self._asked.digest)
        self.parts.append(Said(response.text))
        ending = ENDINGS.get(response.finish, "end")
        if self._left is None:
            return ending
        self._left -= tokens_of(response.text) if response.usage is None else response.usage.output_tokens
        return "tokens" if ending == "length" else ending

    def number(self) -> str:
        """The number that the last answer names: in its first line, as explanations may follow."""
        said = self.parts[-1].text.strip()
        return last_number(said.partition("\n")[0]) or last_number(said)

    def _bounded(self, request: Request) -> Request:
        if self._left is None:
            return request
        most = request.sampling.max_tokens
        self._left = max(self._left, SHORTEST)
        left = self._left if most is None else min(self._left, most)
        return replace(request, sampling=replace(request.sampling, max_tokens=left))

    def _request(self) -> Request:
        if self._in_place:
            return replace(self._asked, prefix=self.text)
        (head,) = self._asked.messages
        if len(self.parts) == 1:
            return replace(self._asked, messages=(user(f"{head.text}\n\n{self._cue}"),))
        thought = self.parts[1].text.strip()
        said = (assistant(thought),) if thought else ()
        return replace(self._asked, messages=(user(f"{head.text}\n\n{STEP_BY_STEP}"), *said, user(self._cue)))
