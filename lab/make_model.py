"""Makes a small Llama-type model folder: a configuration and a tokenizer, no weights. Run by the stack's own Python.

usage: make_model.py FOLDER
"""
import json
import pathlib
import random
import sys

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 640, "intermediate_size": 2560,
    "num_hidden_layers": 4, "num_attention_heads": 10, "num_key_value_heads": 10, "head_dim": 64, "vocab_size": 2048,
    "max_position_embeddings": 2048, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
    "bos_token_id": 0, "eos_token_id": 1, "torch_dtype": "float32", "tie_word_embeddings": False,
}
SYLLABLES = "ka lo mi ren ta vu sel dor pan chi gra nu ost eli ber fa zon quil her mas ti wo ye drin ul".split()


def corpus(lines=4000):
    """Words of made-up syllables: they fall into about two tokens each, as plain English does in a small vocabulary."""
    rng = random.Random(1)
    words = ["".join(rng.choices(SYLLABLES, k=rng.randint(1, 4))) for _ in range(5000)]
    return [" ".join(rng.choices(words, k=12)) for _ in range(lines)]


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(corpus(), trainers.BpeTrainer(
        vocab_size=CONFIG["vocab_size"], special_tokens=["<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({
        "tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>", "model_max_length": 2048}))
    (folder / "config.json").write_text(json.dumps(CONFIG, indent=1))


if __name__ == "__main__":
    main()
