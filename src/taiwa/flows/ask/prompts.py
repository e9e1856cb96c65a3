"""The prompts of a dialogue before retrieval, and policies that replace them: Markdown files.

The prompts are sections of the files in `prompt_texts`, one file per language. A policy has indicators, thresholds, functions and
a table of cases in its front matter; the text below it, and its sections `## statements`, `## questions`, `## scale` and so on,
replace the prompts of taiwa word for word.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import cast

from taiwa.conversation.turn_prompt import Exchange
from taiwa.flows.ask.types import QUESTIONS, SCORES, Condition, PolicyCase, PolicyFunction, PolicyTable, Thresholds
from taiwa.kernel.errors import ConfigError
from taiwa.kernel.serialization import Json
from taiwa.yamlfile import read_yaml, to_json

SECTION = re.compile(r"^##[ \t]+(\S.*?)[ \t]*\n(.*?)(?=^##[ \t]|\Z)", re.MULTILINE | re.DOTALL)

ENTRY = re.compile(r"^- (\w+): (.*)", re.MULTILINE)

EXCHANGE = re.compile(r"^(>>?) (.*)\n(.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Prompts:
    """The prompts in one language; `sections` are the texts of its file by their headings."""

    sections: Mapping[str, str]

    def replaced_by(self, sections: Sequence[tuple[str, str]]) -> "Prompts":
        """Return these prompts with some sections replaced."""
        return Prompts({**self.sections, **dict(sections)})

    def entries(self, section: str) -> Mapping[str, str]:
        """Return the entries of a section that is a list of names and texts."""
        return dict(ENTRY.findall(self.sections[section]))

    def exchanges(self, *, excerpts: bool = True) -> tuple[Exchange, ...]:
        """Return the exchanges that show how a reply uses documents and notes: a passage, notes, and below `>` messages with their
        replies, which rest on the notes too below `>>`. Without `excerpts` the messages stand alone.
        """
        passage, notes, rest = (self.sections["exchanges"] or "\n\n\n\n").split("\n\n", 2)
        before = self.before(passage) if excerpts else ""
        return tuple(
            Exchange(before, notes, self.message(asked) if excerpts else asked, replied, rests_on_notes=mark == ">>")
            for mark, asked, replied in EXCHANGE.findall(rest)
        )

    def before(self, passages: str) -> str:
        """Return what stands before a message that is replied to with passages."""
        return f"{self.sections['excerpts']}\n\n{passages}"

    def message(self, text: str) -> str:
        """Return a message that is replied to with passages."""
        return f"{self.sections['message']} {text}"

    def assess(self, names: Sequence[str]) -> str:
        """Return the instructions for scores and questions of these names at once."""
        return self._own("assess", names) or self._join("material", "scale", "statements", "questions")

    def call_function(self, names: Sequence[str]) -> str:
        """Return the instructions for a call of a function with fields of these names."""
        own = self._own("assess", names)
        return own or self._insert(self._join("material", "functions", "scale", "questions"))

    def _insert(self, text: str) -> str:
        for name, statement in self.entries("statements").items():
            text = text.replace(f"{{{name}}}", statement)
        return text

    def _own(self, section: str, names: Sequence[str]) -> str:
        """Return the text of a policy, followed by the scores and questions that it does not name; "" without a text."""
        text = self.sections.get(section)
        if text is None:
            return ""
        silent = [name for name in names if not re.search(rf"\b{re.escape(name)}\b", text)]
        statements, questions = self.entries("statements"), self.entries("questions")
        scores = [f"- {name}: {statements[name]}" for name in silent if name in statements]
        asked = [f"- {name}: {questions[name]}" for name in silent if name in questions]
        rest = [ENTRY.sub("", self.sections["questions"]).strip()] if asked else []
        scale = [self.sections["scale"]] if scores else []
        return "\n".join((self._insert(text), *scale, *scores, *asked, *rest)).rstrip()

    def answer(self, language: str) -> str:
        """Return the instructions for an answer with citations in a language (en, ja, zh; "": that of the question)."""
        names = self.entries("languages")
        return self.sections["answer"].replace("{language}", names.get(language, names["same"]))

    def _join(self, *sections: str) -> str:
        return "\n".join(self.sections[name] for name in sections)


@cache
def load_prompts(language: str) -> Prompts:
    """Return the prompts in English, Japanese or Chinese."""
    text = (files("taiwa.flows.ask") / "prompt_texts" / f"{language}.md").read_text("utf-8")
    return Prompts({name: section.strip("\n") for name, section in SECTION.findall(text)})


MAX_POLICY_CHARS = 64_000

FRONT = re.compile(r"---\n(.*?)\n---\n(.*)", re.DOTALL)

CONDITION = re.compile(r"(\w+) *(<=|>=|<|>) *([\w.]+)")

ACTS = ("search", "hand over", "advise")

KEYS = ("taiwa", "policy", "about", "thresholds", "functions", "cases")


def read_policy(text: str, where: str = "the policy") -> PolicyTable:
    """Read the text of a policy file; `where` names it in errors.

    Raises:
        ConfigError: the file is malformed, or uses an unknown name.
    """
    found = FRONT.fullmatch(text.replace("\r\n", "\n").strip() + "\n")
    if found is None:
        why = "the front matter is missing; begin the file with the lines `---`, `taiwa: 1`, `---`"
        raise ConfigError(f"{where}: {why}")
    return _Reader(where).table(found[1], found[2])


@cache
def shipped_policy(name: str) -> PolicyTable:
    """Return a policy of the package."""
    return read_policy((files("taiwa.flows.ask") / "policies" / f"{name}.md").read_text("utf-8"), name)


class _Reader:
    """Reads one file; every problem is an error that names the file and the key."""

    def __init__(self, where: str) -> None:
        self.where = where

    def table(self, front: str, body: str) -> PolicyTable:
        tree = read_yaml(f"\n{front}", self.where, max_chars=MAX_POLICY_CHARS)
        keys = self.mapping("the front matter", None if tree is None else to_json(tree))
        for key in keys:
            self.known("key", key, KEYS)
        if keys.get("taiwa") != 1:
            raise self.error("`taiwa` must be 1")
        sections = self.sections(body)
        scores = tuple(dict(ENTRY.findall(sections["statements"]))) if "statements" in sections else SCORES
        questions = tuple(dict(ENTRY.findall(sections["questions"]))) if "questions" in sections else QUESTIONS
        thresholds = self.mapping("thresholds", keys.get("thresholds") or {})
        levels = {name: self.number(f"threshold {name}", number) for name, number in thresholds.items()}
        cases = keys.get("cases") or []
        if not isinstance(cases, list):
            raise self.error("`cases` must be a list")
        built_in = tuple(Thresholds.__dataclass_fields__)
        names = {*levels, *built_in}
        functions = self.mapping("functions", keys.get("functions") or {})
        read = tuple(self.case(number, each, scores, questions, names) for number, each in enumerate(cases, 1))
        used = {condition.level for case in read for condition in case.conditions}
        for name in levels.keys() - used:  # without a case that uses it, only a threshold of taiwa has an effect
            self.known("threshold", name, (*built_in, *sorted(used - set(built_in))))
        return PolicyTable(
            str(keys.get("policy") or self.where),
            scores,
            questions,
            tuple(levels.items()),
            tuple(self.function(name, each, (*scores, *questions)) for name, each in functions.items()),
            read,
            tuple(sections.items()),
        )

    def sections(self, body: str) -> dict[str, str]:
        head, *_ = re.split(r"^##[ \t]", body, maxsplit=1, flags=re.MULTILINE)
        sections: dict[str, str] = {}
        for name, text in SECTION.findall(body):
            self.known("section", name, (*load_prompts("en").sections, "assess"))
            if name in sections:
                raise self.error(f"the section `## {name}` occurs twice; keep one")
            sections[name] = text.strip()
            if name == "exchanges" and text.strip() and text.strip().count("\n\n") < 2:
                raise self.error(
                    "`## exchanges` needs a passage, notes and messages with replies, with empty lines between them"
                )
        return ({"assess": head.strip()} if head.strip() else {}) | sections

    def function(self, name: str, data: Json, fields: tuple[str, ...]) -> PolicyFunction:
        parts = self.mapping(f"function {name}", data)
        for key in parts:
            self.known(f"key of function {name}", key, ("about", "fields", "implies"))
        listed = parts.get("fields") or list[Json](fields)
        if not isinstance(listed, list):
            raise self.error(f"the fields of function {name} must be a list")
        chosen = tuple(self.known("field", str(each), fields) for each in listed)
        what = f"`implies` of function {name}"
        implied = self.mapping(what, parts.get("implies") or {})
        levels = {self.known("score", score, fields): self.number(what, number) for score, number in implied.items()}
        return PolicyFunction(name, str(parts.get("about") or ""), chosen, tuple(levels.items()))

    def case(
        self, number: int, data: Json, scores: tuple[str, ...], questions: tuple[str, ...], thresholds: set[str]
    ) -> PolicyCase:
        ((when, then),) = self.mapping(f"case {number}", data).items() or (("", ""),)
        act, _, question = str(then).partition(" ") if str(then) not in ACTS else (str(then), "", "")
        if act == "ask":
            self.known("question", question, questions)
        else:
            self.known("act", str(then), (*ACTS, "ask QUESTION"))
        return PolicyCase(tuple(self.conditions(when, scores, thresholds)), act, question)

    def conditions(self, when: str, scores: tuple[str, ...], thresholds: set[str]) -> list[Condition]:
        if when == "otherwise":
            return []
        conditions: list[Condition] = []
        for part in when.split(","):
            found = CONDITION.fullmatch(part.strip())
            if found is None:
                raise self.error(f"cannot read the condition {part.strip()!r}; write, for example, `clarity >= 2`")
            name, sign, level = found.groups()
            self.known("score", name, scores)
            if not re.fullmatch(r"\d(?:\.\d+)?", level):
                self.known("threshold", level, tuple(sorted(thresholds)))
            conditions.append(Condition(name, sign, level))
        return conditions

    def mapping(self, what: str, data: Json) -> Mapping[str, Json]:
        if not isinstance(data, dict):
            raise self.error(f"{what} must be a mapping")
        return cast("Mapping[str, Json]", data)

    def number(self, what: str, data: Json) -> float:
        if isinstance(data, bool) or not isinstance(data, (int, float)):
            raise self.error(f"{what} must be a number, got {data!r}")
        return data

    def known(self, kind: str, name: str, names: tuple[str, ...]) -> str:
        if name not in names:
            close = get_close_matches(name, names, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"choose one of {', '.join(names)}"
            raise self.error(f"unknown {kind} {name!r}; {hint}")
        return name

    def error(self, message: str) -> ConfigError:
        return ConfigError(f"{self.where}: {message}")
