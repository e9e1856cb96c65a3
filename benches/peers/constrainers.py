"""Constraint libraries as logits processors for `generate()` of transformers, each set up as its documentation shows.

All get the same vocabulary and are configured to exclude whitespace, like ours in this comparison.
"""

import json
from collections.abc import Callable
from functools import cache
from typing import Any

from taiwa.constraints import Vocabulary
from taiwa.kernel.serialization import Json

__all__ = ["PEERS"]

Schema = dict[str, Json]


def xgrammar(made: Vocabulary) -> Callable[[Schema], Any]:
    """XGrammar's own processor (`xgrammar.contrib.hf`)."""
    import xgrammar as xgr
    from xgrammar.contrib.hf import LogitsProcessor

    info = xgr.TokenizerInfo(list(made.tokens), xgr.VocabType.RAW, vocab_size=len(made), stop_token_ids=list(made.end))
    compiler = xgr.GrammarCompiler(info)

    def of(schema: Schema) -> Any:
        return LogitsProcessor(
            compiler.compile_json_schema(json.dumps(schema), any_whitespace=False, separators=(",", ":"))
        )

    return of


def outlines_core(made: Vocabulary) -> Callable[[Schema], Any]:
    """Outlines' index and numpy kernel."""
    import numpy as np
    import outlines_core
    import torch
    from outlines_core.json_schema import build_regex_from_schema
    from outlines_core.kernels.numpy import (
        allocate_token_bitmask,
        apply_token_bitmask_inplace,
        fill_next_token_bitmask,
    )

    spelled: dict[bytes, list[int]] = {}
    for token, text in enumerate(made.tokens):
        if text and token not in made.special:
            spelled.setdefault(text, []).append(token)
    held = outlines_core.Vocabulary(made.end[0], spelled)

    class Held:
        def __init__(self, index: Any) -> None:
            self.guide = outlines_core.Guide(index)
            self.mask = allocate_token_bitmask(len(made))
            self.begun = False

        def __call__(self, input_ids: Any, scores: Any) -> Any:
            if self.begun:
                self.guide.advance(int(input_ids[0, -1]), False)
            self.begun = True
            fill_next_token_bitmask(self.guide, self.mask)
            logits = np.ascontiguousarray(scores.numpy())
            apply_token_bitmask_inplace(logits, self.mask)
            return torch.from_numpy(logits)

    @cache
    def index(text: str) -> Any:
        return outlines_core.Index(build_regex_from_schema(text, ""), held)

    return lambda schema: Held(index(json.dumps(schema)))


def llguidance(made: Vocabulary) -> Callable[[Schema], Any]:
    """llguidance, the engine that we use, with its own numpy kernel."""
    import torch
    from llguidance import LLMatcher
    from llguidance.numpy import allocate_token_bitmask, apply_token_bitmask_inplace, fill_next_token_bitmask

    from taiwa.constraints.allowed_tokens import tokenizer_of

    class Held:
        def __init__(self, schema: Schema) -> None:
            grammar = LLMatcher.grammar_from_json_schema(json.dumps(schema), overrides={"whitespace_flexible": False})
            self.matcher = LLMatcher(tokenizer_of(made), grammar)
            self.mask = allocate_token_bitmask(1, len(made))
            self.begun = False

        def __call__(self, input_ids: Any, scores: Any) -> Any:
            if self.begun:
                self.matcher.consume_token(int(input_ids[0, -1]))
            self.begun = True
            fill_next_token_bitmask(self.matcher, self.mask, 0)
            logits = scores.numpy()
            apply_token_bitmask_inplace(logits, self.mask)
            return torch.from_numpy(logits)

    return Held


def lm_format_enforcer(made: Vocabulary) -> Callable[[Schema], Any]:
    """lm-format-enforcer behind the `prefix_allowed_tokens_fn` of transformers."""
    from lmformatenforcer import JsonSchemaParser, TokenEnforcer, TokenEnforcerTokenizerData
    from transformers import PrefixConstrainedLogitsProcessor

    def decode(tokens: list[int]) -> str:
        return made.decode(tokens).decode("utf-8", "replace")

    regular = [
        (token, text.decode("utf-8", "replace"), text.startswith(b" "))
        for token, text in enumerate(made.tokens)
        if text and token not in made.special
    ]
    data = TokenEnforcerTokenizerData(regular, decode, made.end[0], False, len(made))

    def of(schema: Schema) -> Any:
        enforcer = TokenEnforcer(data, JsonSchemaParser(schema))
        return PrefixConstrainedLogitsProcessor(
            lambda _, sent: enforcer.get_allowed_tokens(sent.tolist()).allowed_tokens, num_beams=1
        )

    return of


PEERS: dict[str, Callable[[Vocabulary], Callable[[Schema], Any]]] = {
    "xgrammar": xgrammar,
    "outlines-core": outlines_core,
    "llguidance": llguidance,
    "lm-format-enforcer": lm_format_enforcer,
}
