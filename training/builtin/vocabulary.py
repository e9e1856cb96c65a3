"""Tokenizer training: frequent pieces of prompts and answers, by byte-pair merges within runs."""

import json
from collections.abc import Iterable
from pathlib import Path

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from taiwa.models.builtin.tokenizer import END, Tokens, split_runs

__all__ = ["ANSWER", "SCORES", "SPECIAL", "TASKS", "train", "write"]

ANSWER = "<answer>"
TASKS = ("solve", "number", "desk", "assess")
SCORES = ("clarity", "is_question", "is_consultation", "in_internal_docs", "ask_person")
SPECIAL = (END, ANSWER, *(f"<{name}>" for name in (*TASKS, *SCORES)))
ELEMENTS = """\
H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br Kr Rb Sr Y Zr Nb Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs \
Ba La Ce Pr Nd Pm Sm Eu Gd Tb Dy Ho Er Tm Yb Lu Hf Ta W Re Os Ir Pt Au Hg Tl Pb Bi Po At Rn Fr Ra Ac Th Pa U""".split()
CHARACTERS = 1_100
RAREST = 24
BLANK, BREAK = "\u2581", "\u240a"
VISIBLE = str.maketrans({" ": BLANK, "\n": BREAK})
HIDDEN = {BLANK: " ", BREAK: "\n"}


def train(texts: Iterable[str], size: int) -> Tokens:
    """Train a tokenizer on some texts; its table has at most `size` tokens."""
    most = size - 256 - len(SPECIAL)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.BpeTrainer(
        vocab_size=most, min_frequency=RAREST, limit_alphabet=CHARACTERS, show_progress=False, special_tokens=[]
    )
    tokenizer.train_from_iterator(
        (" ".join(run.translate(VISIBLE) for run in split_runs(text)) for text in texts), trainer
    )
    ranked = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    learnt = ["".join(HIDDEN.get(sign, sign) for sign in piece) for piece, _ in ranked]
    pieces = [each for each in dict.fromkeys((*ELEMENTS, *learnt)) if len(each.encode()) > 1]
    return Tokens(SPECIAL, pieces[:most])


def write(tokens: Tokens, path: Path) -> None:
    """Write a tokenizer to a file."""
    table = {"special": list(tokens.special), "pieces": list(tokens.pieces)}
    path.write_text(json.dumps(table, ensure_ascii=False, indent=0) + "\n", "utf-8")
