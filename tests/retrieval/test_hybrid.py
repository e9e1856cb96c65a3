"""Passages by meaning: vectors are kept, closed and deleted like their passages, and fused only where that was shown to help."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from taiwa.kernel.errors import ConfigError, InputError, ModelError
from taiwa.kernel.messages import Passage, reciprocal_ranks, user
from taiwa.retrieval import Index, Library, ScopedRetriever
from taiwa.retrieval.document_access import SIDECAR
from taiwa.retrieval.hybrid import BertEncoder, HybridIndex
from tests.lazily import Lazily

tokenizers: Any = Lazily("tokenizers")
torch: Any = Lazily("torch")
transformers: Any = Lazily("transformers")

TOPICS = {"leave": ("holiday", "vacation"), "pay": ("salary", "wage"), "trip": ("train", "journey")}


class Topics:
    """Knows which words mean the same; vectors are topics."""

    name = "topics-1"

    def __init__(self) -> None:
        self.seen: list[str] = []

    def embed(self, texts: Sequence[str], what: str) -> Any:
        self.seen += texts if what == "passage" else ()
        rows = np.array([[float(any(word in text for word in words)) for words in TOPICS.values()] for text in texts])
        rows = rows + 0.01
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture
def fused(index: Index, folder: Path) -> HybridIndex:
    (folder / "a.md").write_text("ten days of vacation")
    (folder / "b.md").write_text("the wage is paid in May")
    (folder / "c.md").write_text("journey by rail")
    (folder / "d.md").write_text("secret wage of the chief")
    (folder / SIDECAR).write_text("d.md: [group:hr]")
    index.refresh()
    return HybridIndex(index, Topics())


def sources(found: Sequence[Passage]) -> list[str]:
    return [passage.source for passage in found]


def test_what_means_the_same_is_found_though_no_word_is_shared(fused: HybridIndex) -> None:
    assert fused.make_vectors() == 4

    assert fused.by_words("holiday") == ()
    assert sources(fused.find("holiday", 1)) == ["a.md"]
    assert sources(fused.find("how much?", 1, history=[user("my salary")])) == ["b.md"]


def test_vectors_are_made_once_and_again_for_what_changed(fused: HybridIndex, folder: Path) -> None:
    fused.make_vectors()
    assert fused.make_vectors() == 0
    (folder / "a.md").write_text("ten days of salary")
    (folder / "c.md").unlink()
    fused.refresh()

    assert fused.make_vectors() == 1
    near = fused.backend.nearest("topics-1", fused.embedder.embed(["salary"], "question")[0], 9, frozenset())
    assert sorted(sources(near)) == ["a.md", "b.md"]


def test_what_may_not_be_seen_is_not_near_either(fused: HybridIndex) -> None:
    fused.make_vectors()

    assert "d.md" not in sources(fused.find("salary", 9))
    assert "d.md" in sources(fused.find("salary", 9, ["group:hr"]))


def test_a_vector_in_bytes_is_near_to_what_it_was(fused: HybridIndex) -> None:
    chance = np.random.default_rng(1)
    names = [passage.id for passage in fused.backend.without_vectors("random", 9)]
    rows = chance.normal(size=(len(names), 384)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    fused.backend.put_vectors("random", [*zip(names, rows, strict=True), ("9-000000000000-9", rows[0])])

    for name, row in zip(names, rows, strict=True):
        near = fused.backend.nearest("random", row, 1, frozenset({"group:hr"}))
        assert near[0].id == name
        assert near[0].score == pytest.approx(1.0, abs=0.01)
    with pytest.raises(InputError, match="have 384 numbers, not 3"):
        fused.backend.nearest("random", rows[0][:3], 1, frozenset())


class Failing(Topics):
    """Fails as often as it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def embed(self, texts: Sequence[str], what: str) -> Any:
        self.asked += 1
        raise ModelError("it is out of order")


def test_an_embedder_that_fails_leaves_the_words_and_is_let_alone_for_a_while(fused: HybridIndex) -> None:
    fused.make_vectors()
    now = [100.0]
    broken = Failing()
    always = HybridIndex(fused, broken, clock=lambda: now[0])

    assert always.find("wage") == fused.by_words("wage")
    assert always.trouble == "docs: found by words alone, as its embedder fails: it is out of order"
    assert ScopedRetriever([always]).find("wage") == always.find("wage")
    assert ScopedRetriever([always]).troubles == (always.trouble,)
    assert broken.asked == 1
    now[0] += 31
    always.embedder = Topics()
    assert sources(always.find("holiday", 1)) == ["a.md"]
    assert always.trouble == ""


def test_vectors_that_were_made_before_a_failure_are_kept(fused: HybridIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("taiwa.retrieval.hybrid.BATCH", 3)
    told: list[int] = []

    class Once(Failing):
        def embed(self, texts: Sequence[str], what: str) -> Any:
            return super().embed(texts, what) if told else Topics().embed(texts, what)

    with pytest.raises(ModelError):
        HybridIndex(fused, Once()).make_vectors(told.append)

    assert told == [3]
    assert fused.make_vectors() == 1


def test_indexes_with_and_without_vectors_are_asked_together(
    fused: HybridIndex, library: Library, tmp_path: Path
) -> None:
    fused.make_vectors()
    other = tmp_path / "other"
    other.mkdir()
    (other / "e.md").write_text("holiday holiday holiday")
    (other / "f.md").write_text("a holiday of the chief, and many other things that nobody asks for")
    plain = library.create(other, "plain")
    plain.refresh()
    within = ScopedRetriever([HybridIndex(fused, Topics()), plain], history=[user("hello")])

    found = within.find("holiday", 9)

    assert sources(found)[:2] == ["plain/e.md", "plain/f.md"]
    assert "docs/a.md" in sources(found)
    assert len({passage.id for passage in found}) == len(found)
    assert within.find("holiday", 0) == ()
    assert sources(within.find("holiday", 1)) == ["plain/e.md"]
    assert within.troubles == ()


def test_ranks_are_fused_by_rank_alone() -> None:
    a, b, c = (Passage(name, name, score, id=name) for name, score in (("a", 9.0), ("b", 8.0), ("c", 0.1)))

    assert sources(reciprocal_ranks([[a, b], [c, b]], 9)) == ["b", "a", "c"]
    assert sources(reciprocal_ranks([[a], []], 9)) == ["a"]
    assert reciprocal_ranks([], 3) == ()
    assert sources(reciprocal_ranks([[a, b], [None, b]], 9)) == ["b", "a"]


WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] the leave of day 有 給 休 暇".split()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small encoder of random weights, as the library that makes such models writes it."""
    folder = tmp_path_factory.mktemp("model")
    torch.manual_seed(5)
    config = transformers.BertConfig(
        vocab_size=len(WORDS), hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=16,
    )  # fmt: skip
    transformers.BertModel(config).eval().save_pretrained(folder)
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.WordPiece({word: at for at, word in enumerate(WORDS)}, unk_token="[UNK]")
    )
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        "[CLS] $A [SEP]", None, [("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


@pytest.mark.parametrize("first", [False, True])
def test_a_model_gives_the_vectors_that_torch_gives(model: Path, first: bool) -> None:
    (model / "1_Pooling").mkdir(exist_ok=True)
    (model / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_cls_token": first}))
    texts = ["the leave of the day", "有給休暇", "", "day " * 50, "the"]

    ours = BertEncoder(model).embed(texts, "passage")

    bert = transformers.BertModel.from_pretrained(model).eval()
    tokenizer = tokenizers.Tokenizer.from_file(str(model / "tokenizer.json"))
    tokenizer.enable_truncation(16)
    for text, row in zip(texts, ours, strict=True):
        with torch.no_grad():
            hidden = bert(torch.tensor([tokenizer.encode(text).ids])).last_hidden_state[0]
        right = (hidden[0] if first else hidden.mean(0)).numpy()
        assert np.dot(row, right / np.linalg.norm(right)) == pytest.approx(1.0, abs=1e-5)


def test_a_model_is_named_by_what_it_is(model: Path, tmp_path: Path) -> None:
    assert BertEncoder(model).name.startswith(f"{model.name}-")


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("config.json", "", "is .* the folder of a sentence model"),
        ("config.json", "[]", "not a JSON object"),
        ("config.json", '{"model_type": "llama"}', "only BERT's encoder"),
        ("model.safetensors", "short", "cannot be read as safetensors"),
        ("tokenizer.json", "{", "cannot be read"),
    ],
)
def test_a_folder_that_holds_no_model_says_so(model: Path, tmp_path: Path, name: str, text: str, said: str) -> None:
    for part in ("config.json", "model.safetensors", "tokenizer.json"):
        (tmp_path / part).write_bytes((model / part).read_bytes())
    (tmp_path / name).write_text(text)

    with pytest.raises(ConfigError, match=said):
        BertEncoder(tmp_path)
