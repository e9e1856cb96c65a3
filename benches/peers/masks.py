"""One mask engine in its own process and environment: `masks.py ENGINE CASES.json TEKKEN.json`.

Prints one line of JSON: CPU seconds for the import, the vocabulary tables, and the first and each further mask of each schema. It
does not import taiwa, so an environment with torch can run it. The tokens of the texts come with the cases.
"""

import base64
import json
import sys
import time
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

now = time.process_time
Step = tuple[Callable[[], object], Callable[[int], object]]


def tokens(path: str) -> tuple[list[bytes], int]:
    """Return the bytes of the tokens, and the number of special tokens."""
    held = json.loads(Path(path).read_bytes())
    size, named = held["config"]["default_vocab_size"], held["config"]["default_num_special_tokens"]
    special = [b"<unk>", b"<s>", b"</s>", *(f"<SPECIAL_{place}>".encode() for place in range(3, named))]
    return special + [base64.b64decode(item["token_bytes"]) for item in held["vocab"][: size - named]], named


def xgrammar(vocabulary: list[bytes], _: int) -> Callable[[str], Step]:
    library = import_module("xgrammar")
    info = library.TokenizerInfo(vocabulary, library.VocabType.RAW, vocab_size=len(vocabulary), stop_token_ids=[2])
    compiler = library.GrammarCompiler(info, max_threads=1, cache_enabled=False)
    mask = library.allocate_token_bitmask(1, len(vocabulary))

    def start(schema: str) -> Step:
        matcher = library.GrammarMatcher(compiler.compile_json_schema(schema))
        return (lambda: matcher.fill_next_token_bitmask(mask)), matcher.accept_token

    return start


def outlines_core(vocabulary: list[bytes], named: int) -> Callable[[str], Step]:
    library, schemas = import_module("outlines_core"), import_module("outlines_core.json_schema")
    spelled: dict[bytes, list[int]] = {}
    for token, text in enumerate(vocabulary):
        if token >= named:
            spelled.setdefault(text, []).append(token)
    held = library.Vocabulary(2, spelled)
    numpy = import_module("numpy")
    mask = numpy.zeros((len(vocabulary) + 31) // 32, dtype=numpy.int32)

    def start(schema: str) -> Step:
        guide = library.Guide(library.Index(schemas.build_regex_from_schema(schema), held))
        return (lambda: guide.write_mask_into(mask.ctypes.data, mask.size, 4)), guide.advance

    return start


def lm_format_enforcer(vocabulary: list[bytes], named: int) -> Callable[[str], Step]:
    library = import_module("lmformatenforcer")
    texts = [text.decode("utf-8", "replace") for text in vocabulary]
    regular = [(token, texts[token], False) for token in range(named, len(texts))]
    held = library.TokenEnforcerTokenizerData(
        regular,
        lambda taken: b"".join(vocabulary[token] for token in taken).decode("utf-8", "replace"),
        2,
        True,
        len(texts),
    )

    def start(schema: str) -> Step:
        enforcer = library.TokenEnforcer(held, library.JsonSchemaParser(json.loads(schema)))
        taken: list[int] = []
        return (lambda: enforcer.get_allowed_tokens(taken)), taken.append

    return start


ENGINES: dict[str, tuple[str, Callable[[list[bytes], int], Callable[[str], Step]]]] = {
    "xgrammar": ("xgrammar", xgrammar),
    "outlines-core": ("outlines_core", outlines_core),
    "lm-format-enforcer": ("lmformatenforcer", lm_format_enforcer),
}


def measured(name: str, cases: list[dict[str, Any]], path: str) -> dict[str, Any]:
    vocabulary, named = tokens(path)
    begun = now()
    module, tables = ENGINES[name]
    import_module(module)
    imported = now()
    start = tables(vocabulary, named)
    built = now()
    cold = 0.0
    firsts: dict[str, float] = {}
    masks: dict[str, list[float]] = {}
    for case in cases:
        at = now()
        mask, advance = start(json.dumps(case["schema"]))
        mask()
        firsts[case["name"]] = now() - at
        cold = cold or now()
        times: list[float] = []
        for token in case["tokens"]:
            advance(token)
            at = now()
            mask()
            times.append(now() - at)
        masks[case["name"]] = times
    return {
        "import": imported - begun,
        "tables": built - imported,
        "first": firsts,
        "masks": masks,
        "cold": cold,
        "version": version(name),
    }


if __name__ == "__main__":
    given = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
    print(json.dumps(measured(sys.argv[1], given, sys.argv[3])))
