"""SmolLM2 answers 100 questions in each of four grammars: no row gets stuck, Lark parses what is complete.

In two of them every text is short, so that every answer is complete. In the other two (any JSON value, SQL)
a text may have any length, and answers are cut; Lark parses what is shown to complete them.

The counts are printed (`pytest -rP`); bench/RESULTS.md records a run.
"""

import json
from collections import Counter
from itertools import product
from pathlib import Path

import jax
import pytest
from bounded import longest_text
from lark import Lark
from witness import Finder

import jaxgcd
from jaxgcd import models

pytest.importorskip("gguf")
pytest.importorskip("tokenizers")
pytestmark = [pytest.mark.model, pytest.mark.prove]

EXAMPLES = Path(__file__).parent.parent / "examples"
ROWS, OPEN_ENDED, TEMPERATURE = 20, 64, 0.7

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
RECORD = (
    "Describe {} as a record with name, age, alive, kind and tags.",
    "What is {}? Answer with a JSON object.",
    "Extract the facts: “We saw {} yesterday. It was 12 years old.”",
    "Extract the facts: “Nobody had ever told me about {}, which was a pity.”",
    "Invent somebody who likes {}.",
    "Give {} a very long name and three tags.",
    "How old is {}, and is it alive?",
    "Tell me a story about {}.",
    "Say nothing about {}.",
    "{}",
)
SELECT = (
    "Write an SQL query that returns all rows of the table {}.",
    "Write an SQL query that counts the rows of {}.",
    "Write an SQL query for the names in {} that begin with A, ordered by name.",
    "Return the ten newest {} in SQL.",
    "What is the average price in {}? Write SQL.",
    "Which {} have a price above 20 and below 50? Write SQL.",
    "Select three columns of {} where the city is Zürich or 東京.",
    "Write the longest SQL query about {} that you can think of.",
    "Tell me a story about {}.",
    "{}",
)
QUESTIONS = {
    "json": [question.format(thing) for question, thing in product(JSON, THINGS)],
    "sql": [question.format(table) for question, table in product(SQL, TABLES)],
    "record": [question.format(thing) for question, thing in product(RECORD, THINGS)],
    "select": [question.format(table) for question, table in product(SELECT, TABLES)],
}


@pytest.fixture(scope="module")
def loaded(smollm2_file) -> models.LoadedModel:
    return models.load(smollm2_file, progress=False)


@pytest.mark.parametrize("name", ["record", "select"])
def test_100_answers_that_are_all_complete(loaded, name) -> None:
    grammar = (EXAMPLES / f"{name}.lark").read_text()
    parser = Lark(grammar, parser="lalr", lexer="contextual")
    longest = longest_text(parser)
    found = answers(loaded, grammar, name, longest + 1)  # no token is empty, and EOS is one
    assert {finish for _, finish in found} == {jaxgcd.Finish.EOS}
    assert max(len(text) for text, _ in found) <= longest
    for text, _ in found:
        parser.parse(text.decode())
        assert name != "record" or [*json.loads(text)] == ["name", "age", "alive", "kind", "tags"]


@pytest.mark.parametrize("name", ["json", "sql"])
def test_100_answers_of_any_length(loaded, name) -> None:
    grammar = (EXAMPLES / f"{name}.lark").read_text()
    parser = Lark(grammar, parser="lalr", lexer="contextual")
    found = answers(loaded, grammar, name, OPEN_ENDED)
    kinds = Counter(finish.name for _, finish in found)
    assert kinds.keys() <= {"EOS", "LENGTH"}
    assert kinds["EOS"] >= 30  # most questions ask for little
    witnesses = Finder(parser)
    for text, finish in found:
        if finish == jaxgcd.Finish.EOS:
            parser.parse(text.decode())
            assert name != "json" or json.dumps(json.loads(text))
        else:  # what was cut can be completed: Lark parses the witness
            assert witnesses.find(text) is not None, text


Answer = tuple[bytes, jaxgcd.Finish]


def answers(loaded: models.LoadedModel, grammar: str, name: str, max_new_tokens: int) -> list[Answer]:
    """The answers to 100 questions, `ROWS` at a time; prints how they ended."""
    questions = QUESTIONS[name]
    assert len({*questions}) == 100
    # At this temperature it happens that brackets open, and open.
    tables = jaxgcd.compile_grammar(grammar, loaded.vocabulary(), max_depth=512)
    parts = [answered(loaded, tables, questions, first, max_new_tokens) for first in range(0, 100, ROWS)]
    found = [answer for part in parts for answer in part]
    kinds = Counter(finish.name for _, finish in found)
    texts = {text for text, _ in found}
    sizes = f"{len(texts)} different texts, the longest of {max(map(len, texts))} bytes"
    print(f"{name}, at most {max_new_tokens} tokens: {dict(kinds)}; {sizes}")
    return found


def answered(
    loaded: models.LoadedModel,
    tables: jaxgcd.Tables,
    questions: list[str],
    first: int,
    max_new_tokens: int,
) -> list[Answer]:
    """The answers to some questions, drawn together."""
    assert loaded.chat_template is not None
    batch = [loaded.chat_template.ask(question) for question in questions[first : first + ROWS]]
    prompts = [loaded.tokenizer.encode(text, add_special_tokens=False).ids for text in batch]
    decode_fn, cache, last = models.start(
        loaded.model, prompts, max_new_tokens=max_new_tokens, max_length=max_new_tokens + 64
    )
    output = jaxgcd.generate(
        jax.random.split(jax.random.key(first), ROWS),
        *(decode_fn, cache, tables, jaxgcd.init(tables, ROWS), last),
        max_new_tokens=max_new_tokens,
        temperature=TEMPERATURE,
    )
    vocabulary = loaded.vocabulary()
    rows = zip(output.tokens.tolist(), output.length.tolist(), output.finish.tolist(), strict=True)
    return [(vocabulary.spell(row[:length]), jaxgcd.Finish(end)) for row, length, end in rows]
