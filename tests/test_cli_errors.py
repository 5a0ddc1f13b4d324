"""What the command line refuses: no traceback, a line that names the place, and the documented exit code."""

import json
import shutil
from pathlib import Path

import pytest
from checkpoints import random_weights, settings_of, write_chat_model, write_folder

import jaxgcd

pytest.importorskip("typer")
pytest.importorskip("tokenizers")
pytest.importorskip("safetensors")

from cli_runs import DRAW, GRAMMAR, run, write, write_tables

from jaxgcd import models


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> str:
    return write_chat_model(tmp_path_factory.mktemp("cli") / "model")


@pytest.fixture
def grammar(tmp_path) -> str:
    return write(tmp_path / "grammar.lark", GRAMMAR)


@pytest.fixture
def saved(model, grammar, tmp_path) -> tuple[str, str]:
    return write_tables(tmp_path, grammar, model)


def failure(*arguments: str, stdin: str | None = None, code: int = 1) -> str:
    if arguments[0] == "generate" and "--max-new-tokens" not in arguments:
        arguments = (*arguments, "--max-new-tokens", "9")  # the model has room for 64
    found, out, err = run(*arguments, stdin=stdin)
    assert (found, out) == (code, ""), (out, err)
    assert "Traceback" not in err
    return " ".join(err.replace("│", " ").split())


def test_files(model, grammar, tmp_path):
    assert "/no/model: no such file or folder" in failure("generate", "/no/model", grammar, "a")
    assert "'/no/grammar' cannot be read" in failure("generate", model, "/no/grammar", "a")
    assert "/no/tokens: no such file" in failure("compile", grammar, "/no/tokens")
    assert "/no/t.json: No such file" in failure("compile", grammar, "/no/t.json")
    assert "/no/file" in failure("inspect", "/no/file")
    assert "not a file of jaxgcd's" in failure("inspect", grammar)
    assert "/no/prompt: No such file" in failure("generate", model, grammar, "-f", "/no/prompt")
    (tmp_path / "latin1").write_bytes(b"\xe9")
    error = failure("generate", model, grammar, "-f", str(tmp_path / "latin1"))
    assert "latin1: not a UTF-8 text" in error
    assert "not a tokenizer.json" in failure("compile", grammar, write(tmp_path / "t.json", "{"))
    assert "not a SentencePiece" in failure("compile", grammar, write(tmp_path / "t.model", "?"))
    assert "/no/folder" in failure("compile", grammar, model, "--save", "/no/folder/file")


def test_grammars(model, tmp_path):
    assert "Lark rejects" in failure("compile", "-", model, stdin="start: [[")
    assert "No text that" in failure("compile", "-", model, stdin='start: "z"')
    assert "terminal /(a)\\1/: a back-reference" in failure("compile", "-", model, stdin=r"start: /(a)\1/")


def test_models(model, grammar, tmp_path):
    settings = settings_of("llama")
    bare = str(write_folder(tmp_path / "bare", settings, random_weights(settings), 1))
    assert "no chat template; give the prompt as it is, with --raw" in failure("generate", bare, grammar, "a")
    assert "at least one token" in failure("generate", model, grammar, "--raw", "")
    long = failure("generate", model, grammar, "--raw", "a" * 60, "--max-new-tokens", "40")
    assert "room for 100" in long
    second = failure("generate", model, "/no/grammar", "--raw", "a", "a" * 60, "--max-new-tokens", "40")
    assert "prompt 1 has 60 tokens, and with --max-new-tokens 40 needs room for 100" in second


def test_tokenizers_that_fail(model, grammar, tmp_path):
    """The library panics on the one, and cannot encode with the other: a Unigram without unknown."""
    damaged = Path(shutil.copytree(model, tmp_path / "damaged"))
    tokenizer = json.loads((damaged / "tokenizer.json").read_text())
    tokenizer["normalizer"] = {"type": "Precompiled", "precompiled_charsmap": "AAAA"}
    (damaged / "tokenizer.json").write_text(json.dumps(tokenizer))
    for arguments in (("generate", str(damaged), grammar, "a"), ("compile", grammar, str(damaged))):
        assert "tokenizer's files cannot be read" in failure(*arguments)
    file = f"{damaged}/tokenizer.json"
    assert "not a tokenizer.json" in failure("compile", grammar, file, "--eos", "0")
    tokenizer["normalizer"] = None
    tokenizer["added_tokens"] = []
    tokenizer["pre_tokenizer"] = None
    tokenizer["model"] = {"type": "Unigram", "unk_id": None, "vocab": [["a", -1.0], ["b", -1.0]]}
    (damaged / "tokenizer.json").write_text(json.dumps(tokenizer))
    error = failure("generate", str(damaged), grammar, "z", "--raw")
    assert "cannot encode the prompt" in error


def test_stops_that_are_none(model, grammar):
    few = ("a", "--max-new-tokens", "9")
    error = failure("generate", model, "/no/grammar", *few, "--stop-id", "99", code=2)
    assert "99, which is no token id below 13" in error
    long = failure("generate", "/no/model", grammar, *few, "--stop", "é" * 2100, code=2)
    assert "4096 bytes in all" in long


def test_tables_that_were_padded_or_joined(model, grammar, saved, tmp_path):
    tables, other = jaxgcd.load(saved[0]), str(tmp_path / "other.jaxgcd")
    jaxgcd.save(other, jaxgcd.pad(tables))
    assert run("generate", model, other, "a", *DRAW) == run("generate", model, grammar, "a", *DRAW)
    jaxgcd.save(other, jaxgcd.concatenate([tables, tables]))
    assert "holds 3 joined grammars" in failure("generate", model, other, "a")


def test_tables_of_another_vocabulary(model, saved, tmp_path):
    tables = str(tmp_path / "other.jaxgcd")
    jaxgcd.save(tables, jaxgcd.compile_grammar('start: "a"', jaxgcd.Vocabulary([b"a", b""], eos=[1])))
    assert "another vocabulary" in failure("generate", model, tables, "a")
    assert "'vocabulary', not 'tables'" in failure("generate", model, saved[1], "a")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--no-such-option"], "No such option"),
        (["a", "--temperature", "-1"], "--temperature"),
        (["a", "--lexer", "dynamic"], "contextual"),
        (["a", "-n", "2"], "at 0 all samples are the same"),
        (["a", "--raw", "--system", "b"], "--system"),
        (["-f", "-", "--lines", "-"], "only one of the inputs"),
        (["a", "--top-k", "0", "--temperature", "1"], "--top-k"),
        (["a", "--top-p", "1.5", "--temperature", "1"], "--top-p"),
        (["a", "--top-p", "0.9"], "no effect at --temperature 0"),
        (["a", "--stop", ""], "end every answer at once"),
        (["a", "--logit-bias", "5"], "is not TOKEN=BIAS"),
        (["a", "--logit-bias", "=5"], "is not TOKEN=BIAS"),
        (["a", "--logit-bias", "a=inf"], "with a number, or -inf"),
        (["a", "--logit-bias", "abc=1"], "no token is the text 'abc' alone"),
        (["a", "--logit-bias", "99=1"], "no token id 99 below 13"),
        (["a", "--logit-bias", "9" * 5000 + "=1"], "no token is the text"),
        (["a", "b", "--stream"], "add --json"),
        (["--lines", "-"], "all lines are blank"),
    ],
)
def test_usage(model, grammar, arguments, message):
    assert message in failure("generate", model, grammar, *arguments, stdin="\n", code=2)


def test_usage_of_files(model, grammar, saved):
    tables, tokens = saved
    tokenizer = f"{model}/tokenizer.json"
    assert "compiled already" in failure("generate", model, tables, "a", "--lexer", "basic", code=2)
    assert "compiled already" in failure("compile", tables, model, code=2)
    assert "--eos" in failure("compile", grammar, tokenizer, code=2)
    assert "no token '<eos>'" in failure("compile", grammar, tokenizer, "--eos", "<eos>", code=2)
    assert "no token" in failure("compile", grammar, tokenizer, "--eos", "9" * 5000, code=2)
    assert "--eos" in failure("compile", grammar, tokens, "--eos", "0", code=2)


def test_interruption(model, grammar, monkeypatch):
    def interrupt(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(models, "start", interrupt)
    assert failure("generate", model, grammar, "a", code=130) == "jaxgcd: interrupted"


def test_running_out_of_memory(model, grammar, monkeypatch):
    def exhaust(*args, **options):
        raise MemoryError("too large")

    monkeypatch.setattr(models, "start", exhaust)
    assert "a smaller --batch-size" in failure("generate", model, grammar, "a")


def test_our_own_faults_keep_their_traceback(model, grammar, monkeypatch):
    monkeypatch.setattr(models, "start", lambda *args, **options: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        run("generate", model, grammar, "a", "--max-new-tokens", "9")
