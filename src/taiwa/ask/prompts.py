"""The prompts of a dialogue before retrieval: sections of the Markdown files in `prompt_texts`, one file per language."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

SECTION = re.compile(r"^## (\w+)\n\n(.*?)\n(?=\n## |\Z)", re.MULTILINE | re.DOTALL)

ENTRY = re.compile(r"^- (\w+): (.*)", re.MULTILINE)


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

    def assess(self, names: Sequence[str]) -> str:
        """Return the instructions for scores and questions of these names at once."""
        text = self.sections.get("assess")
        return (
            self._join("material", "scale", "statements", "questions") if text is None else self._complete(text, names)
        )

    def clarify(self, names: Sequence[str]) -> str:
        """Return the instructions for questions back of these names alone."""
        text = self.sections.get("clarify")
        return self._join("material", "questions") if text is None else self._complete(text, names)

    def call_function(self, names: Sequence[str]) -> str:
        """Return the instructions for a call of a function with fields of these names."""
        text = self.sections.get("assess")
        return (
            self._insert(self._join("material", "functions", "scale", "questions"))
            if text is None
            else self._complete(text, names)
        )

    def _insert(self, text: str) -> str:
        for name, statement in self.entries("statements").items():
            text = text.replace(f"{{{name}}}", statement)
        return text

    def _complete(self, text: str, names: Sequence[str]) -> str:
        """Add to the text of a policy what the scores and questions state that it does not name."""
        silent = [name for name in names if not re.search(rf"\b{re.escape(name)}\b", text)]
        statements, questions = self.entries("statements"), self.entries("questions")
        scores = [f"- {name}: {statements[name]}" for name in silent if name in statements]
        asked = [f"- {name}: {questions[name]}" for name in silent if name in questions]
        rest = [ENTRY.sub("", self.sections["questions"]).strip()] if asked else []
        return "\n".join(
            (self._insert(text), *([self.sections["scale"]] if scores else []), *scores, *asked, *rest)
        ).rstrip()

    def score(self, name: str) -> tuple[str, str]:
        """Return the instructions and the question for one score as one digit."""
        return self.sections["material"], self.sections["digit"].replace(
            "{statement}", self.entries("statements")[name]
        )

    def answer(self, language: str) -> str:
        """Return the instructions for an answer with citations in a language (en, ja, zh; "": that of the question)."""
        names = self.entries("languages")
        return self.sections["answer"].replace("{language}", names.get(language, names["same"]))

    def _join(self, *sections: str) -> str:
        return "\n".join(self.sections[name] for name in sections)


@cache
def load_prompts(language: str) -> Prompts:
    """Return the prompts in English, Japanese or Chinese."""
    text = (files("taiwa.ask") / "prompt_texts" / f"{language}.md").read_text("utf-8")
    return Prompts(dict(SECTION.findall(text)))
