"""The whole way on a real model of transformers: as `generate()` writes, and what it does not do."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from taiwa import constraints
from taiwa.kernel.errors import ConfigError, InputError, ModelError
from taiwa.kernel.messages import (
    JsonSchema,
    Regex,
    Request,
    Sampling,
    assistant,
    system,
    user,
)
from taiwa.models.inprocess.generator import GeneratedText, TextGenerator
from taiwa.models.inprocess.gguf_process import processors
from taiwa.models.inprocess.transformers_model import GuideLogitsProcessor, Loaded, LocalModel
from tests.lazily import Lazily
from tests.peers.tiny import model_of, tokenizer_of

torch: Any = Lazily("torch")

SHAPE = JsonSchema(
    {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 12},
            "kind": {"enum": ["tea", "coffee"]},
            "cups": {"type": "integer", "minimum": 1, "maximum": 40},
        },
        "required": ["name", "kind", "cups"],
        "additionalProperties": False,
    }
)
ASK = Request((system("Answer."), user("今日は, hello")), sampling=Sampling(max_tokens=24))


@pytest.fixture
def generator(model: LocalModel) -> TextGenerator[Loaded]:
    return model.generator()


def account(generator: TextGenerator[Loaded], request: Request, **given: Any) -> GeneratedText:
    *_, found = generator.stream(request, **given)
    assert isinstance(found, GeneratedText)
    return found


def generated(generator: TextGenerator[Loaded], request: Request, **given: Any) -> list[int]:
    """What `generate()` of transformers writes."""
    prompt = torch.tensor([generator.loaded.chat_template.tokens(request)])
    network = generator.loaded.network.model
    given = {"max_new_tokens": request.sampling.max_tokens, "do_sample": False} | given
    return network.generate(prompt, **given)[0, prompt.shape[1] :].tolist()


def without_end(tokens: list[int], generator: TextGenerator[Loaded]) -> list[int]:
    return [token for token in tokens if token not in generator.loaded.network.vocabulary.end]


@pytest.mark.parametrize("text", ["hello", "a story about tea", "お茶", "1 2 3", "x" * 40])
def test_the_likeliest_text_is_that_of_generate(generator: TextGenerator[Loaded], text: str) -> None:
    request = Request((user(text),), sampling=Sampling(max_tokens=24))

    assert account(generator, request).result.tokens == without_end(generated(generator, request), generator)


@pytest.mark.parametrize("text", ["hello", "a story about tea", "お茶"])
@pytest.mark.parametrize("constraint", [SHAPE, Regex("(tea|coffee)( and [a-z]{3,9}){2}")])
def test_the_likeliest_text_under_a_constraint_is_that_of_generate_with_our_processor(
    generator: TextGenerator[Loaded], text: str, constraint: Any
) -> None:
    request = Request((user(text),), constraint=constraint, sampling=Sampling(max_tokens=60))
    made = constraints.compile(constraint, generator.loaded.network.vocabulary, whitespace="spaced")

    ours = account(generator, request)
    theirs = generated(generator, request, logits_processor=[GuideLogitsProcessor(made)])

    assert ours.result.tokens == without_end(theirs, generator)
    assert ours.result.passes < len(ours.result.tokens)
    assert made.accepts(ours.text.encode()) or ours.result.finish == "length"


def test_a_model_adds_no_keys_to_those_of_an_open_schema(generator: TextGenerator[Loaded]) -> None:
    schema = JsonSchema({"type": "object", "properties": {"kind": {"const": "tea"}}, "required": ["kind"]})
    sampling = Sampling(max_tokens=40, temperature=2.0)
    asked = [Request((user("hello"),), constraint=schema, sampling=replace(sampling, seed=n)) for n in range(5)]
    begun = replace(asked[0], prefix='{"kind": "tea", "mood": "mi')

    assert {account(generator, each).text for each in asked} == {'{"kind": "tea"}'}
    assert account(generator, begun).text


def test_the_processor_holds_several_texts_that_are_written_together(generator: TextGenerator[Loaded]) -> None:
    made = constraints.compile(SHAPE, generator.loaded.network.vocabulary)
    prompt = torch.tensor([generator.loaded.chat_template.tokens(ASK)] * 3)
    torch.manual_seed(1)

    found = generator.loaded.network.model.generate(
        prompt, max_new_tokens=80, do_sample=True, logits_processor=[GuideLogitsProcessor(made)], pad_token_id=2
    )

    vocabulary = generator.loaded.network.vocabulary
    texts = [vocabulary.decode(line).decode() for line in found[:, prompt.shape[1] :].tolist()]
    assert len(set(texts)) > 1
    for text in texts:
        assert made.accepts(text.encode()), text


def test_what_was_read_is_not_read_again(generator: TextGenerator[Loaded]) -> None:
    first = account(generator, ASK)
    longer = Request((*ASK.messages, assistant("yes"), user("and tea?")), sampling=ASK.sampling)
    second = account(generator, longer)

    assert first.usage.cache_read_tokens == 0
    assert second.usage.cache_read_tokens >= first.usage.input_tokens - 3
    assert second.result.tokens == without_end(generated(generator, longer), generator)


def test_rows_of_the_output_head_are_those_of_the_whole(generator: TextGenerator[Loaded]) -> None:
    tokens = generator.loaded.chat_template.tokens(ASK)
    rows = np.array([0, 3, 7, 420], dtype=np.intp)

    few = generator.loaded.network.start().read(tokens, rows)
    every = generator.loaded.network.start().read(tokens)

    assert generator.loaded.network.head is not None
    np.testing.assert_allclose(few, every[rows], atol=1e-5)


def test_likelihoods_are_those_of_the_model(generator: TextGenerator[Loaded]) -> None:
    found = account(generator, Request(ASK.messages, sampling=Sampling(max_tokens=3), top_logprobs=4))
    tokens = generator.loaded.chat_template.tokens(ASK)

    logits = torch.tensor(generator.loaded.network.start().read(tokens))
    wanted = torch.log_softmax(logits, 0).topk(4).values.tolist()
    assert [number for _, number in found.result.logprobs[0].top_logprobs] == pytest.approx(wanted, abs=1e-4)
    assert found.result.logprobs[0].logprob == pytest.approx(wanted[0], abs=1e-4)


@pytest.mark.parametrize("text", ["", "hello", "お茶 12", " two  spaces "])
def test_a_conversation_has_the_tokens_of_the_chat_template(generator: TextGenerator[Loaded], text: str) -> None:
    request = Request((system("Be brief."), user("hi"), assistant("yes"), user(text)))
    messages = [{"role": each.role, "content": each.text} for each in request.messages]

    found = tokenizer_of().apply_chat_template(messages, add_generation_prompt=True, return_dict=False)

    assert list(generator.loaded.chat_template.tokens(request)) == found


def test_over_completions_a_model_with_a_template_continues_plain_text(folder: Path) -> None:
    loaded = LocalModel(f"local:{folder}?threads=1&wire=completions").generator().loaded

    assert loaded.prepare(Request((user("hello 12"),))) == loaded.encode("hello 12")


def test_more_than_the_model_can_read_is_refused_and_an_answer_ends_where_it_ends(
    generator: TextGenerator[Loaded],
) -> None:
    with pytest.raises(ModelError, match=r"tokens; local:.* reads at most 512"):
        account(generator, Request((user("tea " * 600),)))

    long = account(generator, Request((user("tea " * 140),), sampling=Sampling(max_tokens=4_000)))
    assert long.result.finish in {"length", "stop"}
    assert long.usage.input_tokens + long.usage.output_tokens <= 512


def test_a_model_with_windows_is_read_right_though_it_cannot_go_back(folder: Path) -> None:
    from transformers import MistralConfig, MistralForCausalLM

    from taiwa.models.inprocess.transformers_model import Network

    torch.manual_seed(0)
    tokenizer = tokenizer_of()
    config = MistralConfig(
        vocab_size=512, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, sliding_window=8, max_position_embeddings=256, initializer_range=0.3, head_dim=16,
    )  # fmt: skip
    made = constraints.Vocabulary.from_hf(tokenizer, size=512)
    network = Network(MistralForCausalLM(config).eval(), made)
    tokens = list(made.encode("the quick brown fox jumps over the lazy dog"))

    track = network.start()
    track.read([*tokens, 300, 301, 302])
    track.rollback(3)
    ours = track.read([310])

    assert track.batch(2) is None
    np.testing.assert_allclose(ours, network.start().read([*tokens, 310]), atol=1e-4)


def test_a_head_that_caps_its_logits_is_the_models_own(folder: Path) -> None:
    from transformers import Gemma2Config, Gemma2ForCausalLM

    from taiwa.models.inprocess.transformers_model import Network

    torch.manual_seed(0)
    tokenizer = tokenizer_of()
    config = Gemma2Config(
        vocab_size=512, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, head_dim=16,
        num_key_value_heads=1, max_position_embeddings=256, initializer_range=0.3, final_logit_softcapping=2.0,
    )  # fmt: skip
    network = Network(Gemma2ForCausalLM(config).eval(), constraints.Vocabulary.from_hf(tokenizer, size=512))
    rows = np.array([1, 5, 100], dtype=np.intp)

    few, every = network.start().read([5, 6, 7], rows), network.start().read([5, 6, 7])

    assert network.head is not None
    np.testing.assert_allclose(few, every[rows], atol=1e-5)
    assert np.abs(every).max() <= 2.0


def test_a_long_request_is_read_in_parts(generator: TextGenerator[Loaded], monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = generator.loaded.chat_template.tokens(ASK)
    whole = generator.loaded.network.start().read(tokens)
    monkeypatch.setattr("taiwa.models.inprocess.transformers_model.CHUNK", 5)

    np.testing.assert_allclose(generator.loaded.network.start().read(tokens), whole, atol=1e-4)


def test_another_seed_of_the_weights_is_another_model(folder: Path) -> None:
    one, two = (model_of(tokenizer_of(), seed=seed) for seed in (0, 1))

    assert not torch.equal(one.lm_head.weight, two.lm_head.weight)


def test_what_cannot_be_loaded_is_told_in_one_line(folder: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(folder, broken)
    (broken / "tokenizer.json").write_text("{")
    strange = tmp_path / "strange"
    shutil.copytree(folder, strange)
    config = json.loads((strange / "config.json").read_text())
    (strange / "config.json").write_text(json.dumps(config | {"model_type": "unheard-of"}))

    for path in (broken, strange):
        with pytest.raises(ConfigError, match="cannot load") as caught:
            LocalModel(f"local:{path}").generator()
        assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("name", "value"),
    [("hidden_size", 10**12), ("vocab_size", 10**6), ("num_hidden_layers", 10**6), ("num_hidden_layers", -1), ("num_attention_heads", 0), ("hidden_size", 0), ("max_position_embeddings", -1), ("intermediate_size", "x\n\x1b[31m"), ("num_key_value_heads", 1.5), ("num_experts", 10**6)],
)  # fmt: skip
def test_sizes_that_the_weights_cannot_have_are_refused_in_one_line(
    folder: Path, tmp_path: Path, name: str, value: object
) -> None:
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {name: value}))

    with pytest.raises(ConfigError, match="cannot load") as caught:
        LocalModel(f"local:{tmp_path}?threads=1").generator()

    assert caught.value.message.isprintable()


def edited(name: str, *path: str | int, to: object) -> Callable[[Path], None]:
    """Return what sets one value in a JSON file of a folder."""

    def edit(folder: Path) -> None:
        file = folder / name
        content = part = json.loads(file.read_text())
        for key in path[:-1]:
            part = part[key]
        part[path[-1]] = to
        file.write_text(json.dumps(content))

    return edit


def indexed(folder: Path, place: str) -> None:
    """Name a file for one of the tensors of a model, whose weights are in such files."""
    shutil.copy(folder / "model.safetensors", folder.parent / "a.safetensors")
    (folder / "model.safetensors").rename(folder / "a.safetensors")
    index = {"metadata": {"total_size": 1}, "weight_map": {"lm_head.weight": place}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def lessened(file: Path, name: str) -> None:
    """Remove a tensor."""
    from safetensors.numpy import load_file, save_file

    tensors = load_file(file)
    del tensors[name]
    save_file(tensors, file, {"format": "pt"})


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (edited("tokenizer.json", "model", "vocab", "tea", to=2**31), "has the number 2147483648"),
        (edited("tokenizer.json", "model", "vocab", "tea", to=450), "has 451 tokens, and its weights 448"),
        (edited("tokenizer.json", "model", "continuing_subword_prefix", to="##" * 100_000), "cannot load"),
        (edited("tokenizer.json", "normalizer", to={"type": "Replace", "pattern": {"Regex": ""}, "content": "x"}), "fails"),
        (lambda folder: indexed(folder, str(folder.parent / "a.safetensors")), "not in the folder"),
        (lambda folder: lessened(folder / "model.safetensors", "model.norm.weight"), r"lack model\.norm\.weight"),
        (lambda folder: (folder / "chat_template.jinja").write_text("{{ 'a' * 10**11 }}"), "MemoryError"),
    ],
    ids=["id", "row", "panic as it is read", "panic at a text", "index", "tensor", "template"],
)  # fmt: skip
def test_a_hostile_folder_is_refused_in_one_line(
    folder: Path, tmp_path: Path, change: Callable[[Path], object], fault: str
) -> None:
    copy = shutil.copytree(folder, tmp_path / "model")
    change(copy)

    with pytest.raises((ConfigError, InputError), match=fault) as caught:
        account(LocalModel(f"local:{copy}?threads=1").generator(), Request((user("tea"),)))

    assert caught.value.message.isprintable()


def test_a_text_is_read_to_its_end_whatever_the_tokenizer_says(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    cut = {"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0}
    edited("tokenizer.json", "truncation", to=cut)(tmp_path)
    generator = LocalModel(f"local:{tmp_path}?threads=1").generator()

    assert len(generator.loaded.chat_template.tokens(ASK)) > 3


def test_no_more_threads_are_started_than_there_are_processors(folder: Path) -> None:
    LocalModel(f"local:{folder}?threads=4000").generator()

    assert torch.get_num_threads() <= processors()
    torch.set_num_threads(1)  # as in the other tests


def test_a_model_too_large_for_this_machine_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("taiwa.models.inprocess.transformers_model.available_memory", lambda: 1000)

    with pytest.raises(ConfigError, match="choose a smaller model"):
        LocalModel(f"local:{folder}").generator()


def test_a_device_that_is_not_there_is_refused(folder: Path) -> None:
    with pytest.raises(ConfigError, match="unknown device"):
        LocalModel(f"local:{folder}?device=abacus").generator()
    if not torch.cuda.is_available():
        with pytest.raises(ConfigError, match="does not find a GPU"):
            LocalModel(f"local:{folder}?device=cuda").generator()


def test_numbers_of_sixteen_bits_are_loaded_as_such(folder: Path) -> None:
    half = LocalModel(f"local:{folder}?dtype=bfloat16&threads=1").generator()

    assert half.loaded.network.model.dtype == torch.bfloat16
    assert account(half, Request(ASK.messages, constraint=Regex("[a-z]{4}"))).text.isalpha()
