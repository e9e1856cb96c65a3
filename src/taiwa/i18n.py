"""Texts in the user's language: gettext catalogues of two domains, for English, Japanese and Chinese.

`cli` contains the texts of the command line, `dialogue` the program's sentences in a conversation, `page` those of the page, and the
messages of the library that are worded where they are raised (`Wording`). The English text is the key; if a compiled catalogue is missing, English is shown.
"""

import os
from collections.abc import Mapping
from functools import cache
from gettext import NullTranslations, translation
from pathlib import Path
from typing import Protocol

from taiwa.kernel.wording import Wording

LANGUAGES = ("en", "ja", "zh")
DIALOGUE_VERSION = 1
"""Increased with every change of a sentence in the domain `dialogue`. Committed turns contain these sentences, so version N stays
available: `locale/LANGUAGE/LC_MESSAGES/dialogue-N.po` contains, by the present English texts, the sentences that version N
worded differently.
"""
ENGLISH_ONLY = -1
"""The version to record if the compiled catalogues are missing."""
LOCALE = Path(__file__).parent / "locale"
gettext_noop = str
"""Mark a text for the catalogue; it is translated when it is shown."""


class Translate(Protocol):
    """Translates an English text of one domain and fills in its placeholders."""

    def __call__(self, message: str, /, **values: object) -> str:
        """Return the text in the language of the catalogue."""


def user_language(environ: Mapping[str, str] | None = None) -> str:
    """Return the language of the user: that of `TAIWA_LANG`, else of the locale, else English.

    >>> user_language({"TAIWA_LANG": "", "LANG": "ja_JP.UTF-8"}), user_language({"LANG": "C"})
    ('ja', 'en')
    """
    environ = os.environ if environ is None else environ
    for name in ("TAIWA_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        chosen = environ.get(name, "")[:2].lower()
        if chosen:
            return chosen if chosen in LANGUAGES else "en"
    return "en"


def _(message: str, /, **values: object) -> str:
    """Translate a text of the command line into the user's language and fill in its placeholders.

    >>> _("back to turn {turn}", turn=2)
    'back to turn 2'
    """
    return translator("cli", user_language())(message, **values)


def ngettext(singular: str, plural: str, n: int, /, **values: object) -> str:
    """Translate a text of the command line in the form for a number; `{n}` stands for it, with separators of thousands.

    >>> ngettext("{n} call", "{n} calls", 1), ngettext("{n} call", "{n} calls", 2000)
    ('1 call', '2,000 calls')
    """
    return catalogue("cli", user_language()).ngettext(singular, plural, n).format(**{"n": f"{n:,}"} | values)


@cache
def dialogue_catalogue(language: str, version: int = 0) -> Translate:
    """Return the sentences of a dialogue in a language, in a version of the catalogue (0: the present one).

    >>> dialogue_catalogue("ja", ENGLISH_ONLY)("What does “{words}” refer to?", words="それ")
    'What does “それ” refer to?'
    """
    if version == ENGLISH_ONLY:
        found = NullTranslations()
    else:
        older = [f"dialogue-{n}" for n in range(version, DIALOGUE_VERSION)] if version else []
        found, *others = (translation(name, LOCALE, [language], fallback=True) for name in (*older, "dialogue"))
        for each in others:
            found.add_fallback(each)

    def translate(message: str, /, **values: object) -> str:
        text = found.gettext(message)
        return text.format(**values) if values else text

    return translate


def dialogue_version() -> int:
    """Return the version of the `dialogue` catalogue to record with a turn."""
    compiled = all((LOCALE / language / "LC_MESSAGES" / "dialogue.mo").is_file() for language in LANGUAGES[1:])
    return DIALOGUE_VERSION if compiled else ENGLISH_ONLY


def translator(domain: str, language: str) -> Translate:
    """Return a function that translates the texts of a domain into a language."""
    found = catalogue(domain, language)

    def translate(message: str, /, **values: object) -> str:
        text = message and found.gettext(message)  # the translation of "" is the catalogue's header
        return text.format(**values) if values else text

    return translate


def translated(message: str, language: str) -> str:
    """Return a message of the library in a language; as it is if it is not a `Wording`, nor the template of one.

    >>> translated(Wording("session {name!r} already exists; choose another name", name="tea"), "en")
    "session 'tea' already exists; choose another name"
    """
    translate = translator("page", language)
    return message.translated(translate) if isinstance(message, Wording) else translate(message)


@cache
def catalogue(domain: str, language: str) -> NullTranslations:
    """Return the texts of a domain in a language; without a compiled catalogue, the English ones."""
    return translation(domain, LOCALE, [language], fallback=True)
