"""SmolLM2 answers 100 questions in JSON and 100 in SQL: what is complete, Lark parses, and no row gets stuck.

The counts are printed (`pytest -rP`); bench/RESULTS.md records a run.
"""

import json
from collections import Counter
from itertools import product
from pathlib import Path

import jax
import pytest
from lark import Lark
from witness import Finder

import jaxgcd
from jaxgcd import models

pytest.importorskip("gguf")
pytest.importorskip("tokenizers")
pytestmark = [pytest.mark.model, pytest.mark.prove]

EXAMPLES = Path(__file__).parent.parent / "examples"
ROWS, MAX_NEW_TOKENS, TEMPERATURE = 20, 96, 0.7

THINGS = ("a dog", "a city in Europe", "a book", "a cup of tea", "your favourite song", "a red bicycle")
THINGS += ("the planet Mars", "a doctor", "an old computer", "日本")
JSON = (
    "Describe {} as a JSON object with the keys name and age.",
    "Write a JSON list of three words about {}.",
    "Give two facts about {}, as a JSON object.",
    "Write a JSON object for {}. It has the keys id, title and tags, and tags is a list.",
    "Is {} good? Answer with a JSON object that has the keys answer, which is true or false, and reason.",
    "How many letters has “{}”? Answer with a JSON number.",
    "Write a short sentence about {} as one JSON string.",
    "Rate {} from 1 to 5 in JSON.",
    "Write a nested JSON object about {}, its parts and their prices.",
    "{}",
)
TABLES = (
    "customers",
    "orders",
    "books",
    "employees",
    "cities",
    "songs",
    "flights",
    "students",
    "cars",
    "pets",
)
SQL = (
    "Write an SQL query that returns all rows of the table {}.",
    "Write an SQL query that counts the rows of {}.",
    "Write an SQL query for the names in {} that begin with A, ordered by name.",
    "Return the ten newest {} in SQL.",
    "Write an SQL query that joins {} with the table owners by owner_id.",
    "Which {} have a price above 20 and below 50? Write SQL.",
    "Write an SQL query: for each country, how many {} are there? Only countries with more than 3.",
    "Select the distinct colours of {} with SQL.",
    "Write the longest SQL query about {} that you can think of.",
    "{}",
)
QUESTIONS = {
    "json": [question.format(thing) for question, thing in product(JSON, THINGS)],
    "sql": [question.format(table) for question, table in product(SQL, TABLES)],
}


@pytest.fixture(scope="module")
def loaded(smollm2_file) -> models.LoadedModel:
    return models.load(smollm2_file, progress=False)


@pytest.mark.parametrize("name", QUESTIONS)
def test_100_answers(loaded, name) -> None:
    grammar, questions = (EXAMPLES / f"{name}.lark").read_text(), QUESTIONS[name]
    assert len({*questions}) == 100
    # At this temperature it happens that brackets open, and open.
    tables = jaxgcd.compile_grammar(grammar, loaded.vocabulary(), max_depth=512)
    found = [answer for first in range(0, 100, ROWS) for answer in answered(loaded, tables, questions, first)]
    parser = Lark(grammar, parser="lalr", lexer="contextual")
    kinds = Counter(finish.name for _, finish in found)
    print(f"{name}: {dict(kinds)}; {sum(map(len, {text for text, _ in found}))} bytes of different texts")
    assert kinds.keys() <= {"EOS", "LENGTH"}
    assert kinds["EOS"] >= 30  # most questions ask for little
    witnesses = Finder(parser)
    for text, finish in found:
        if finish == jaxgcd.Finish.EOS:
            parser.parse(text.decode())
            assert name != "json" or json.dumps(json.loads(text))
        else:  # what was cut can be completed: Lark parses the witness
            assert witnesses.find(text) is not None, text


def answered(
    loaded: models.LoadedModel, tables: jaxgcd.Tables, questions: list[str], first: int
) -> list[tuple[bytes, jaxgcd.Finish]]:
    """The answers to some questions, drawn together."""
    assert loaded.chat_template is not None
    batch = [loaded.chat_template.ask(question) for question in questions[first : first + ROWS]]
    prompts = [loaded.tokenizer.encode(text, add_special_tokens=False).ids for text in batch]
    decode_fn, cache, last = models.start(
        loaded.model, prompts, max_new_tokens=MAX_NEW_TOKENS, max_length=MAX_NEW_TOKENS + 64
    )
    output = jaxgcd.generate(
        jax.random.split(jax.random.key(first), ROWS),
        *(decode_fn, cache, tables, jaxgcd.init(tables, ROWS), last),
        max_new_tokens=MAX_NEW_TOKENS,
        temperature=TEMPERATURE,
    )
    vocabulary = loaded.vocabulary()
    rows = zip(output.tokens.tolist(), output.length.tolist(), output.finish.tolist(), strict=True)
    return [(vocabulary.spell(row[:length]), jaxgcd.Finish(end)) for row, length, end in rows]
