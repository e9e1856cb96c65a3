"""Who may see a document: rules of its folder in `.taiwa-access.yaml`, and `access:` in its own front matter.

    hr/**: [group:hr]
    "**/salary*": [group:hr, user:ann]

Every matching rule must admit one of the principals, and so must the document itself: another rule can only narrow. Documents
without a matching rule are visible to all who may open the index. A restriction that cannot be understood grants nothing: an
invalid rule, or one that matches nothing, stops the indexing, and front matter that mentions access but cannot be parsed
closes its document.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from html import unescape
from itertools import takewhile
from typing import Literal, NamedTuple, TypeAlias
from unicodedata import normalize

from taiwa.kernel.errors import ConfigError
from taiwa.kernel.text import IGNORABLE
from taiwa.retrieval.types import PUBLIC, Audience, UnreadableError
from taiwa.yamlfile import Items, Scalar, Table, Tree, read_yaml

SIDECAR = ".taiwa-access.yaml"
ANY = "**"
Marks: TypeAlias = Literal["comments", "page", "markdown"]
MatchName: TypeAlias = Callable[[str], object]
"""A test of whether a part of a pattern matches a name between two slashes."""


class Rule(NamedTuple):
    """A pattern of paths, and names, one of which is required to see what it matches.

    `parts` is the pattern, name by name; None stands for `**`. `above` are the names between the folder of the rule and the
    indexed one, if the rule is above it. `where` is the file and line of the rule.
    """

    pattern: str
    names: tuple[str, ...]
    parts: tuple[MatchName | None, ...]
    above: tuple[str, ...] = ()
    where: str = ""

    def matches(self, path: str) -> bool:
        """Whether a path below the indexed folder is matched, or is below a matched one; linear in the length of both."""
        return _matches(self.parts, (*self.above, *_names(path)))


Rules: TypeAlias = tuple[Rule, ...]


def audience_of(path: str, rules: Rules, own: Iterable[str] | None = None) -> Audience:
    """Return the audience of the document at a path."""
    names = _names(path)
    clauses = {rule.names for rule in rules if _matches(rule.parts, (*rule.above, *names))}
    if own is not None:
        clauses.add(tuple(sorted(set(own))))
    return tuple(sorted(clauses)) or PUBLIC


def _names(path: str) -> list[str]:
    return normalize("NFC", path).split("/")


def read_rules(text: str, where: str, below: Sequence[str] = (), above: Sequence[str] = ()) -> Rules:
    """Read a file of rules; `below` leads from the indexed folder to that of the file, `above` the other way round.

    Raises:
        ConfigError: a rule cannot be understood.
    """
    tree = read_yaml(text, where)
    if tree is None or (isinstance(tree, Scalar) and tree.value is None):
        return ()
    if not isinstance(tree, Table):
        raise ConfigError(f"{where}: rules are written `path: [principals, …]`, one per line")
    rules: list[Rule] = []
    for entry in tree.entries:
        line = f"{where}:{entry.at.line}"
        names = access_names(entry.value)
        if names is None:
            form = "`path: [principals, …]`, like `hr/**: [group:hr]`"
            raise ConfigError(f"{line}: the rule {entry.key!r} must be {form}")
        literal = (normalize("NFC", name).__eq__ for name in below)
        parts = (*literal, *_pattern_parts(entry.key, line))
        rules.append(Rule("/".join((*below, entry.key)), names, parts, tuple(above), line))
    return tuple(rules)


def access_names(tree: Tree) -> tuple[str, ...] | None:
    """Return the principals of a rule: one name or a list of names; None for anything else."""
    items = tree.items if isinstance(tree, Items) else (tree,)
    names = {item.value for item in items if isinstance(item, Scalar) and isinstance(item.value, str) and item.value}
    return tuple(sorted(names)) if all(isinstance(item, Scalar) and item.value in names for item in items) else None


def unmatched_rule(rule: Rule, paths: Iterable[str]) -> ConfigError:
    """Return the error about a rule that matches none of the paths of its folder."""
    folded = rule._replace(parts=tuple(_pattern_parts(rule.pattern.casefold(), rule.where)))
    if (path := next((path for path in paths if folded.matches(path.casefold())), None)) is not None:
        hint = f"names are compared with their case, and there is {path!r}"
    elif set("[]{}!") & set(rule.pattern):
        hint = "only *, ** and ? stand for other characters; write a rule for each folder"
    else:
        hint = "correct it, or remove it"
    return ConfigError(f"{rule.where}: the rule {rule.pattern!r} matches no file, so it would protect nothing; {hint}")


def _pattern_parts(pattern: str, where: str) -> Iterator[MatchName | None]:
    """`*` is anything within a name, `**` any number of folders, `?` one character; a folder means all that it holds.

    A name with accents or voiced kana is the same however it is composed: some systems keep `が` as two characters.
    """
    previous = ""
    for part in normalize("NFC", pattern).split("/"):
        if part in ("", ".") or part == previous == ANY:
            continue
        if part == "..":
            raise ConfigError(f"{where}: the rule {pattern!r} leads out of its folder")
        if ANY in part and part != ANY:
            why = "has `**` within a name: write `**/*.md`, not `**.md`"
            raise ConfigError(f"{where}: the rule {pattern!r} {why}")
        previous = part
        yield None if part == ANY else _name_matcher(part)


def _name_matcher(part: str) -> MatchName:
    if not set("*?") & set(part):
        return part.__eq__
    pieces = ["".join("." if sign == "?" else re.escape(sign) for sign in piece) for piece in part.split("*")]
    if len(pieces) == 1:
        return re.compile(pieces[0], re.DOTALL).fullmatch
    first, *inner, last = pieces
    # Each piece is matched at its first position, without backtracking: a later one would leave less for the following
    # stars.
    return re.compile(f"{first}{''.join(f'(?>.*?{piece})' for piece in inner)}.*{last}", re.DOTALL).fullmatch


def _matches(parts: Sequence[MatchName | None], names: Sequence[str]) -> bool:
    part = name = 0
    retry: tuple[int, int] | None = None  # after the last `**`, which consumes one more folder each time
    while part < len(parts):
        if name == len(names):
            return False
        fits = parts[part]
        if fits is None:
            part += 1
            retry = (part, name)
        elif fits(names[name]):
            part, name = part + 1, name + 1
        elif retry is None:
            return False
        else:
            part, name = retry[0], retry[1] + 1
            retry = (part, name)
    return True


NAME_SUFFIX = re.compile(r"[._-]?(?:ya?ml|json|toml|txt|conf|cfg|ini)\s*\Z")
SURE_NAME = re.compile(
    r"taiwa(?:acc?ess?|acl|permissions?|principals?)(?:rules?|controls?|lists?|files?|polic(?:y|ies)|config)?"
)
LIKELY_NAME = re.compile(
    r"(?:taiwa|documents?|docs?|folders?|files?|index|read|user|group)?(?:access(?:es)?|acl|permissions?|principals?|audience|visibility|readers|rules)"
    r"(?:rules?|controls?|lists?|files?|polic(?:y|ies)|config)?"
)
PRINCIPAL = re.compile(r"(?:user|group|role|team|dept|department)s?:[^\s/]+")


@lru_cache(maxsize=1 << 14)
def is_misnamed(name: str) -> bool:
    """Whether a file name is a misspelling of the rules file, whatever its content: `taiwa_access.yml`."""
    letters = _letters(name)
    return bool(letters and (SURE_NAME.fullmatch(letters) or _is_like(letters, "taiwaaccess")))


def may_be_rules(name: str) -> bool:
    """Whether a file of that name may contain rules; `has_rules` decides by its text: `access.yaml`, `acl.json`."""
    letters = _letters(name)
    return bool(letters) and (LIKELY_NAME.fullmatch(letters) is not None or _means_access(letters))


def _letters(name: str) -> str:
    folded, cut = _folded(name), 1
    while cut:
        folded, cut = NAME_SUFFIX.subn("", folded, count=1)
    return re.sub(r"[\W_]", "", folded)


def has_rules(text: str) -> bool:
    """Whether a text has the form of rules: a pattern with names as its value, or a principal such as `group:hr` anywhere."""
    try:
        tree = read_yaml(text, "rules")
    except ConfigError:
        return PRINCIPAL.search(text) is not None
    entries = tree.entries if isinstance(tree, Table) else ()
    if any(set("*/") & set(entry.key) and access_names(entry.value) is not None for entry in entries):
        return True
    return not isinstance(tree, Scalar) and any(PRINCIPAL.fullmatch(text) for text in _texts(tree))


def _texts(tree: Tree | None, *, only_keys: bool = False) -> Iterator[str]:
    if isinstance(tree, Scalar):
        yield from () if only_keys else (str(tree.value),)
    elif isinstance(tree, Items):
        for item in tree.items:
            yield from _texts(item, only_keys=only_keys)
    elif tree is not None:
        for entry in tree.entries:
            yield entry.key
            yield from _texts(entry.value, only_keys=only_keys)


MOST_FRONT = 64 << 10
"""Characters of front matter."""
END = re.compile(r"^(?:---|\.\.\.)[^\S\n]*$", re.MULTILINE)
"""The line that closes front matter."""

# Text that may be meant as front matter of any tool is examined in a folded copy.
BLANK = re.compile(f"(?:\\s|{IGNORABLE.pattern})*")
BREAK = re.compile("\r\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
ESCAPE = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U000([0-9a-f]{5}))", re.IGNORECASE)
LOOKALIKES = str.maketrans("асеѕ", "aces")
"""Cyrillic letters; `с` is on the key of `c`."""
FENCE = r"(?:-{3,}|\+{3,}|;{3,}|\.{3,}|~{3,}|`{3,}|={3,}|\*{3,}|_{3,}|[\u2013\u2014]{2,})"
ANY_OPENING = re.compile(rf"{FENCE}|<!--|/\*|\{{")
ANY_END = re.compile(rf"^[^\S\n]*(?:{FENCE}|\}}[^\S\n]*$)|-->|\*/", re.MULTILINE)
FRONT_LINE = re.compile(r"(?:[ \t].*|#.*|-(?:[ \t].*)?|[\"'?]?[^:=]{1,100}[:=].*|[\[\]{},].*)?")
"""A possible line of front matter."""
KEY_LINE = re.compile(r"[\s\"'`:@./%;\[(]{0,9}[^\W_][\w .-]{0,40}[\s\"'`\])]{0,9}[:=].*|[ \t]+\S.*")
"""A line that some tools read as metadata without fences: all lines before the first blank one."""
PREAMBLE = re.compile(r"(?:\s|%.*|<!--[\S\s]*?-->|/\*[\S\s]*?\*/)*")
"""Directives and comments that may precede front matter."""
BEGINNING = re.compile(rf"{ANY_OPENING.pattern}|{KEY_LINE.pattern}|%")
BEFORE = re.compile(r"(?:\A|\n|[{,(\[<>|;*/-])[\W_]*\Z")
AFTER = re.compile(r"[\W_]{0,40}?[:=\[({|>]|[^\w\n]*(?:\n|\Z)|(?:[^\S\n]+\S+){1,2}[^\S\n]*(?:\n|\Z)")
"""The context of `access` as a key: a sign after it, or at most two words if the sign is missing."""
FIRST_LINES = 20
COMMENT = re.compile(
    r"^[^\S\n]*(?:[#;%'*]|//|--|/\*|\.\.|rem\b|<!--)[\W_]*+(?P<key>[^:=\n]{1,40}?)[\s\"'`]*[:=]", re.MULTILINE
)
"""A line of metadata in a comment, as texts and tables have it."""
IN_PAGE = re.compile(
    r"<meta\b(?P<meta>(?:\"[^\"]*\"|'[^']*'|[^>])*+)"
    r"|<!--(?:(?!<!--)[\W_])*+(?P<key>[^:=\n>]{1,40}?)[\s\"'`]*[:=]"
)
"""Metadata in the head of a page: the attributes of an element `meta`, or a comment. Each character is read a few times at most."""
META_NAME = re.compile(r"\b(?:name|property|itemprop|http-equiv)\s*=\s*[\"']?([^\"'\s>]{1,100})")
BODY = re.compile(r"<body\b")
NEAR = 200
ALMOST = 0.8


class AccessUnclearError(UnreadableError):
    """A document restricts access in a way that cannot be parsed, so no user may see it."""

    tag = "access-unclear"


class FrontMatter(NamedTuple):
    """The front matter of a document: the start of its text, its title, and its access list (None without one)."""

    end: int = 0
    title: str = ""
    access: tuple[str, ...] | None = None


def front_matter(text: str, marks: Marks = "markdown") -> FrontMatter:
    """Read the front matter of a document: YAML between two lines `---`, the first of the file.

    `marks` says how else its format has metadata: in comments of its first lines, in the head of a page, or in both as Markdown.

    Raises:
        AccessUnclearError: it mentions access in a way that cannot be understood, or text that may be meant as front matter
        or as metadata does.
    """
    front = _front_matter(text)
    if front.access is None and any(map(_means_access, _marked_keys(text[front.end :], marks))):
        raise AccessUnclearError(
            "closed to everyone: it mentions access in a comment or an element `meta`; say who may see it in front matter, between"
            " two lines `---` at its beginning, as `access: [group:hr]`"
        )
    return front


def _marked_keys(text: str, marks: Marks) -> Iterator[str]:
    """Yield the keys of the metadata in the first lines of a text, or in the head of a page."""
    folded = _folded(text[:MOST_FRONT])
    if marks != "page":
        folded = "\n".join(folded.split("\n")[:FIRST_LINES])
    if marks == "comments":
        yield from (found["key"] for found in COMMENT.finditer(folded))
        return
    body = BODY.search(folded)
    for found in IN_PAGE.finditer(folded, 0, body.start() if body else len(folded)):
        names = META_NAME.findall(_folded(unescape(found["meta"] or "")))
        yield from (
            (part for name in names for part in re.split(r"[._:-]", name)) if found["key"] is None else (found["key"],)
        )


def _front_matter(text: str) -> FrontMatter:
    opening = text[:MOST_FRONT].partition("\n")[0]
    if opening.rstrip() == "---" and (end := END.search(text, len(opening) + 1, MOST_FRONT)) is not None:
        front = _read_front(text[len(opening) + 1 : end.start()], min(end.end() + 1, len(text)))
    else:
        front = FrontMatter()
    # What stands outside, or is not closed, too long or malformed, must not contain a restriction.
    if front.access is None and _mentions_access(_maybe_front(text[front.end :])):
        raise AccessUnclearError(
            "closed to everyone: it mentions access outside of front matter, which must be between two lines `---`, begin on"
            f" the first line and have at most {MOST_FRONT >> 10} KB; if it is text, put a heading above it"
        )
    return front


def _maybe_front(text: str) -> str:
    """Return the beginning of a text that may be meant as front matter, folded."""
    blank = BLANK.match(text)
    text = text[blank.end() :] if blank else text
    if not BEGINNING.match(_folded(text[:200])):
        return ""
    folded = _folded(text)
    preamble = PREAMBLE.match(folded)
    begin = preamble.end() if preamble else 0
    opening = ANY_OPENING.match(folded, begin)
    if opening is None:
        return folded[:begin] + "\n".join(takewhile(KEY_LINE.fullmatch, folded[begin:].split("\n")))
    if (end := ANY_END.search(folded, opening.end())) is not None:
        return folded[: end.start()]
    first, _, rest = folded[opening.end() :].partition("\n")
    return "\n".join((folded[:begin], first, *takewhile(FRONT_LINE.fullmatch, rest.split("\n"))))


def _folded(text: str) -> str:
    """Return a text as a reader sees it: without invisible characters, and with one form of each letter and line break."""
    text = IGNORABLE.sub("", BREAK.sub("\n", text))
    return text.lower() if text.isascii() else normalize("NFKC", text).casefold().translate(LOOKALIKES)


def _mentions_access(folded: str) -> bool:
    """Whether `access` occurs as a key in a folded text."""
    places = (word.span() for word in re.finditer("access", folded))
    around = ((folded[max(start - NEAR, 0) : start], folded[end : end + NEAR]) for start, end in places)
    return any(BEFORE.search(before) and AFTER.match(after) for before, after in around)


def _read_front(yaml: str, end: int) -> FrontMatter:
    seen = _folded(ESCAPE.sub(lambda escape: chr(int(escape[1] or escape[2] or escape[3], 16)), yaml))
    try:
        tree = read_yaml(yaml, "front matter", max_chars=MOST_FRONT)
    except ConfigError as error:
        if "access" in seen:
            raise AccessUnclearError(f"closed to everyone: it mentions access, and {error.message}") from None
        line = next((line for line in yaml.split("\n") if line.startswith("title:")), "")
        return FrontMatter(end, line.removeprefix("title:").strip().strip("\"'"))
    own = tree.get("access") if isinstance(tree, Table) else None
    names = None if own is None else access_names(own.value)
    written = sum(map(_means_access, _texts(tree, only_keys=True)))
    if written > (names is not None) or (names is None and _mentions_access(seen)):
        raise AccessUnclearError(
            "closed to everyone: its front matter must say who may see it as `access: [group:hr]`, once, in lower case, and"
            " not below another key"
        )
    title = tree.get("title") if isinstance(tree, Table) else None
    match title and title.value:
        case Scalar(text, value) if value is not None:
            return FrontMatter(end, text, names)
        case _:
            return FrontMatter(end, "", names)


def _means_access(key: str) -> bool:
    """Whether a key is `access`, or a typo of it: `acces`, `accèss`, `-access`."""
    return _is_like(re.sub(r"[\W_]", "", normalize("NFD", _folded(key))), "access")


def _is_like(letters: str, word: str) -> bool:
    return abs(len(letters) - len(word)) < 2 and SequenceMatcher(None, letters, word).ratio() > ALMOST
