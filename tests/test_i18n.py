"""The catalogues hold every text of the code in each language, and committed sentences keep their words."""

import ast
import gettext
import re
import string
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import pytest
from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po

import hatch_build
import taiwa
from taiwa import i18n
from taiwa.i18n import ENGLISH_ONLY, LANGUAGES, _, dialogue_catalogue, dialogue_version, ngettext, user_language
from tests.house.source import walked

SOURCES = Path(taiwa.__file__).parent
DOMAINS = {"cli": ("apps", "cli", "operations"), "dialogue": ("ask", "flows", "models"), "page": ("server/page",)}
KEYWORDS: dict[str, tuple[int, ...] | None] = {
    "_": None,
    "gettext_noop": None,
    "sentence": None,
    "ngettext": (1, 2),
    "_count": (1, 2),
}
METHODS = [("**.py", "python"), ("**.html", "jinja2")]
FUNCTIONS = frozenset(KEYWORDS) | {"Wording"}
TRANSLATED = [(language, domain) for language in LANGUAGES[1:] for domain in DOMAINS]
DIGESTS = {1: "92c4351d96dd1b5b"}
"""By version of the domain `dialogue`: what its catalogues hold. Where this test fails, a sentence has changed: increase
`DIALOGUE_VERSION`, keep the old wording in `dialogue-N.po` (for English too), and add the digest here."""


def extracted(domain: str) -> set[tuple[str, ...]]:
    parts: list[tuple[str, Mapping[str, Any]]] = [(folder, KEYWORDS) for folder in DOMAINS[domain]]
    parts += [(".", {"Wording": None})] * (domain == "page")
    found = (each for folder, words in parts for each in extract_from_dir(SOURCES / folder, METHODS, keywords=words))
    return {(message,) if isinstance(message, str) else tuple(message) for _, _, message, _, _ in found}


def catalogue(language: str, domain: str) -> Catalog:
    with (SOURCES / "locale" / language / "LC_MESSAGES" / f"{domain}.po").open("rb") as text:
        return read_po(text, locale=language, domain=domain, abort_invalid=True)


def messages(found: Catalog) -> Iterator[Message]:
    return (message for message in found if message.id)


def forms(text: object) -> tuple[str, ...]:
    return (text,) if isinstance(text, str) else tuple(cast("tuple[str, ...]", text))


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


@pytest.mark.parametrize(("language", "domain"), TRANSLATED)
def test_a_catalogue_holds_the_texts_of_the_code_and_nothing_else(language: str, domain: str) -> None:
    found = catalogue(language, domain)

    assert {forms(message.id) for message in messages(found)} == extracted(domain)
    assert not found.obsolete
    assert not any(message.fuzzy for message in messages(found))


@pytest.mark.parametrize(("language", "domain"), TRANSLATED)
def test_each_text_is_translated_in_all_forms_with_the_same_placeholders(language: str, domain: str) -> None:
    found = catalogue(language, domain)

    for message in messages(found):
        texts = forms(message.string)
        assert len(texts) == (found.num_plurals if message.pluralizable else 1), message.id
        assert all(text.strip() for text in texts), message.id
        assert all(
            any(ord(letter) > 0x2FFF for letter in text) or text in forms(message.id)
            for text in texts
            if re.search("[a-z]{3}", re.sub(r"\{\w+\}", "", text))
        ), message.id
        wanted = set().union(*map(placeholders, forms(message.id)))
        assert all(placeholders(text) == wanted for text in texts), message.id


@pytest.mark.parametrize(("language", "domain"), TRANSLATED)
def test_the_compiled_catalogue_is_that_of_its_source(language: str, domain: str) -> None:
    """`make setup` compiles it."""
    compiled = gettext.translation(domain, SOURCES / "locale", [language])

    for message in messages(catalogue(language, domain)):
        singular, *plural = forms(message.id)
        found = compiled.ngettext(singular, plural[0], 1) if plural else compiled.gettext(singular)
        assert found == forms(message.string)[0]


def test_a_text_to_translate_is_a_constant_outside_of_an_f_string() -> None:
    """What extracts the texts sees no others."""
    for path in (
        path for folders in DOMAINS.values() for folder in folders for path in (SOURCES / folder).rglob("*.py")
    ):
        nodes = walked(path.read_text(encoding="utf-8"))
        inside = {id(node) for text in nodes if isinstance(text, ast.JoinedStr) for node in ast.walk(text)}
        for call in (node for node in nodes if isinstance(node, ast.Call) and id(node) in inside):
            name = call.func.id if isinstance(call.func, ast.Name) else ""
            constant = bool(call.args) and isinstance(call.args[0], ast.Constant)
            assert not (constant and name in FUNCTIONS), f"{path.name}:{call.lineno}"


def test_a_changed_sentence_is_a_new_version() -> None:
    whole = sorted(
        (language, *forms(each.id), *forms(each.string))
        for language in LANGUAGES[1:]
        for each in messages(catalogue(language, "dialogue"))
    )

    assert sha256(repr(whole).encode()).hexdigest()[:16] == DIGESTS[i18n.DIALOGUE_VERSION]


def test_numbers_choose_the_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAIWA_LANG", "en")
    assert [ngettext("{n} call", "{n} calls", n) for n in (0, 1, 2, 1000)] == [
        "0 calls",
        "1 call",
        "2 calls",
        "1,000 calls",
    ]

    monkeypatch.setenv("TAIWA_LANG", "ja")
    assert [ngettext("{n} call", "{n} calls", n) for n in (1, 2)] == ["呼び出し 1 回", "呼び出し 2 回"]


def test_a_placeholder_is_filled_in_the_user_s_language(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAIWA_LANG", "zh")

    assert _("back to turn {turn}", turn=3) == "已回到第 3 轮"


@pytest.mark.parametrize(
    ("environ", "chosen"),
    [
        ({}, "en"),
        ({"LANG": "ja_JP.UTF-8"}, "ja"),
        ({"LANG": "ja_JP.UTF-8", "LC_ALL": "zh_CN.UTF-8"}, "zh"),
        ({"LC_ALL": "zh_CN.UTF-8", "TAIWA_LANG": "en"}, "en"),
        ({"LANG": "de_DE.UTF-8"}, "en"),
        ({"LC_ALL": "", "LANG": "ja"}, "ja"),
    ],
)
def test_the_nearest_setting_chooses_the_language(environ: dict[str, str], chosen: str) -> None:
    assert user_language(environ) == chosen


@pytest.fixture
def locale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder of catalogues in the place of the package's."""
    monkeypatch.setattr(i18n, "LOCALE", tmp_path)
    monkeypatch.setenv("TAIWA_LANG", "ja")
    caches = (i18n.catalogue, dialogue_catalogue)
    for cached in caches:
        cached.cache_clear()
    yield tmp_path
    for cached in caches:
        cached.cache_clear()


@pytest.mark.usefixtures("locale")
def test_without_compiled_catalogues_english_is_shown() -> None:
    assert _("back to turn {turn}", turn=3) == "back to turn 3"
    assert ngettext("{n} call", "{n} calls", 1) == "1 call"
    assert dialogue_catalogue("ja")("You are welcome.") == "You are welcome."
    assert dialogue_version() == ENGLISH_ONLY


def test_an_older_version_words_a_sentence_as_it_did(locale: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(language: str, name: str, text: str) -> None:
        folder = locale / language / "LC_MESSAGES"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.po").write_text(
            f'msgid ""\nmsgstr "Content-Type: text/plain; charset=utf-8\\n"\n\n{text}', encoding="utf-8"
        )

    write("en", "dialogue-1", 'msgid "Goodbye."\nmsgstr "Bye."\n')
    write("ja", "dialogue-1", 'msgid "Goodbye."\nmsgstr "では。"\n')
    write(
        "ja", "dialogue", 'msgid "Goodbye."\nmsgstr "失礼いたします。"\n\nmsgid "You are welcome."\nmsgstr "いいえ。"\n'
    )
    write("zh", "dialogue", 'msgid "Goodbye."\nmsgstr "再见。"\n')
    hatch_build.compile_catalogues(locale)
    monkeypatch.setattr(i18n, "DIALOGUE_VERSION", 3)

    assert dialogue_version() == 3
    said = {(language, n): dialogue_catalogue(language, n)("Goodbye.") for language in LANGUAGES for n in (0, 1, 2)}
    assert said == {
        ("en", 0): "Goodbye.", ("en", 1): "Bye.", ("en", 2): "Goodbye.",
        ("ja", 0): "失礼いたします。", ("ja", 1): "では。", ("ja", 2): "失礼いたします。",
        ("zh", 0): "再见。", ("zh", 1): "再见。", ("zh", 2): "再见。",
    }  # fmt: skip
    assert dialogue_catalogue("ja", 1)("You are welcome.") == "いいえ。"
