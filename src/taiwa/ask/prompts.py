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

    @property
    def assess(self) -> str:
        """The instructions for all scores and questions at once."""
        return self.sections.get("assess") or self._join("material", "scale", "statements", "questions")

    @property
    def clarify(self) -> str:
        """The instructions for the questions back alone."""
        return self.sections.get("clarify") or self._join("material", "questions")

    @property
    def call_function(self) -> str:
        """The instructions for a call of one of two functions."""
        text = self.sections.get("assess") or self._join("material", "functions", "scale", "questions")
        for name, statement in self.entries("statements").items():
            text = text.replace(f"{{{name}}}", statement)
        return text

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
