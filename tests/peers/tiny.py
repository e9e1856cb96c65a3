"""A tiny model of transformers with random weights, and a tokenizer, made on the spot: real files, real loading code."""

from pathlib import Path
from typing import Any

TEXT = (
    "the quick brown fox jumps over the lazy dog and then it says hello to all of the people in the town ",
    '{"name": "value", "items": [1, 2, 3], "kind": "tea", "true": true, "false": false, "null": null} ',
    "this is a story about a number 12 and another number 345 and a calculator <<calc: 1+2>> = 3 ",
    "これは文です。今日はお茶を飲みます。 这是一个句子。今天喝茶。 ",
)
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPECIAL = ("<|im_start|>", "<|im_end|>", "<|endoftext|>")


def tokenizer_of(size: int = 600) -> Any:
    """A byte-level tokenizer with merges learned from a few sentences."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(TEXT * 8, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|im_end|>", chat_template=TEMPLATE)


def model_of(tokenizer: Any, *, seed: int = 0, context: int = 512, **config: Any) -> Any:
    """A llama of two layers; its output head has more rows than there are tokens, as those of real models have."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    rows = (len(tokenizer) + 63) // 64 * 64
    shape = {
        "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "max_position_embeddings": context, "initializer_range": 0.3,
        "eos_token_id": tokenizer.eos_token_id, "bos_token_id": None, "tie_word_embeddings": False,
    }  # fmt: skip
    return LlamaForCausalLM(LlamaConfig(vocab_size=rows, **(shape | config))).eval()


def build(folder: Path, *, user_defined: tuple[str, ...] = (), **config: Any) -> Path:
    """Write a model into a folder, as one is fetched from a hub; tokens of the user are found in any text."""
    import transformers

    transformers.utils.logging.disable_progress_bar()
    tokenizer = tokenizer_of()
    tokenizer.add_tokens(list(user_defined))
    tokenizer.save_pretrained(folder)
    model_of(tokenizer, **config).save_pretrained(folder)
    return folder
