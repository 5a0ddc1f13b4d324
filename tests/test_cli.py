"""The command line: what it writes, and its exit codes. Python-lark judges the texts."""

import contextlib
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
from checkpoints import gguf_fields, gguf_tensors, random_weights, settings_of, write_chat_model, write_gguf

import jaxgcd

pytest.importorskip("typer")
pytest.importorskip("tokenizers")
pytest.importorskip("safetensors")

from cli_runs import DRAW, GRAMMAR, check_texts, records, run, run_process, write, write_tables

from jaxgcd import cli, models


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> str:
    return write_chat_model(tmp_path_factory.mktemp("cli") / "model")


@pytest.fixture
def grammar(tmp_path) -> str:
    return write(tmp_path / "grammar.lark", GRAMMAR)


@pytest.fixture
def saved(model, grammar, tmp_path) -> tuple[str, str]:
    return write_tables(tmp_path, grammar, model)


class TestGenerate:
    def test_an_answer_is_a_text_of_the_grammar(self, model, grammar):
        code, out, err = run("generate", model, grammar, "ab", "--max-new-tokens", "40", "-q")
        assert (code, err) == (0, "")
        assert out.endswith("\n")
        check_texts([out[:-1]])

    def test_json_lines(self, model, grammar):
        code, out, _ = run("generate", model, grammar, "a", "b c", *DRAW, "-n", "3", "--json")
        found = records(out)
        assert code == 0
        assert [(r["prompt"], r["sample"]) for r in found] == [(p, s) for p in (0, 1) for s in (0, 1, 2)]
        tokens = models.load_vocabulary(model).tokens
        for record in found:
            assert set(record) == {"prompt", "sample", "text", "finish", "tokens", "token_ids"}
            assert record["finish"] == "EOS"
            assert record["tokens"] == len(record["token_ids"])
            assert b"".join(tokens[i] for i in record["token_ids"]).decode() == record["text"]
        texts = [record["text"] for record in found]
        check_texts(texts)
        assert len({*texts}) > 1

    def test_seeds(self, model, grammar):
        def draw(seed: int) -> str:
            return run("generate", model, grammar, "a", *DRAW, "-n", "6", "--seed", str(seed))[1]

        assert draw(0) == draw(0) != draw(1)

    def test_prompts_from_standard_input(self, model, saved, tmp_path):
        """One prompt per line, in batches that the last one does not fill: the same as given one by one."""
        tables, _ = saved
        prompts = ["a", "ab c", "1", "bb", "2 a"]
        lines = "\n\n".join(prompts) + "\n"
        options = ("--max-new-tokens", "40", "--json", "--batch-size", "2", "-q")
        code, out, _ = run("generate", model, tables, "--lines", "-", *options, stdin=lines)
        assert code == 0 and [record["prompt"] for record in records(out)] == [0, 1, 2, 3, 4]
        check_texts([record["text"] for record in records(out)])
        assert run("generate", model, tables, *prompts, *options)[1] == out
        assert run("generate", model, tables, "--lines", write(tmp_path / "l", lines), *options)[1] == out
        one = run("generate", model, tables, *options, stdin="ab c\n")
        assert records(one[1])[0]["text"] == records(out)[1]["text"]
        assert run("generate", model, tables, "-f", write(tmp_path / "f", "ab c"), *options)[1] == one[1]

    def test_the_grammar_from_standard_input(self, model):
        code, out, _ = run("generate", model, "-", "a", *DRAW, stdin=GRAMMAR)
        assert code == 0
        check_texts([out[:-1]])

    def test_the_chat_template_and_raw_prompts(self, model, grammar, monkeypatch):
        seen = []
        start = models.start
        monkeypatch.setattr(
            models,
            "start",
            lambda model, prompts, **options: (seen.append(prompts), start(model, prompts, **options))[1],
        )
        run("generate", model, grammar, "ab", "-q", "--max-new-tokens", "9")
        run("generate", model, grammar, "ab", "--raw", "-q", "--max-new-tokens", "9")
        assert seen == [[[1, 8]], [[8]]]

    def test_gguf(self, grammar, tmp_path):
        settings = settings_of("llama", num_hidden_layers=1)
        path = tmp_path / "model.gguf"
        write_gguf(path, gguf_fields(settings), gguf_tensors(settings, random_weights(settings)))
        code, out, _ = run("generate", str(path), grammar, "--raw", "a", *DRAW)
        assert code == 0
        check_texts([out[:-1]])

    def test_answers_that_do_not_end(self, model, tmp_path):
        """The one token is the first byte of é, as in `Generation.texts`."""
        grammar = write(tmp_path / "g.lark", 'start: "é" "b"')
        code, out, err = run("generate", model, grammar, "a", "--max-new-tokens", "1", "--json")
        record = records(out)[0]
        assert code == cli.ExitCode.INCOMPLETE == 3
        assert (record["finish"], record["text"], record["tokens"]) == ("LENGTH", "\ufffd", 1)
        assert "1 of 1 answers are not complete" in err and "--max-new-tokens" in err

    def test_a_stack_that_is_too_low(self, model, tmp_path):
        grammar = write(tmp_path / "deep.lark", 'start: "a" start "b" | "a" "a" "a" "a" "a" "a" "a" "a"')
        code, out, err = run("generate", model, grammar, "a", "--max-depth", "4", "--json", *DRAW[:-1])
        assert (code, records(out)[0]["finish"]) == (3, "OVERFLOW")
        assert "--max-depth" in err


class TestDrawing:
    """Options of a draw and of a text's end."""

    def test_they_are_those_of_the_library(self, model, grammar, monkeypatch):
        """What each one does, `tests/test_sampling.py` and `tests/test_generation.py` show."""
        asked = []
        monkeypatch.setattr(jaxgcd, "generate", lambda *_, **keywords: (asked.append(keywords), 1 // 0))
        draw = ("--temperature", "2", "--top-k", "7", "--top-p", "0.5", "--min-p", "0.25")
        ends = (
            "--max-new-tokens",
            "9",
            "--min-new-tokens",
            "3",
            "--stop",
            "é",
            "--stop",
            "\n",
            "--stop-id",
            "4",
        )
        bias = ("--logit-bias", "a=-inf", "--logit-bias", "4=2.5", "--logit-bias", " ab=-1")
        with pytest.raises(ZeroDivisionError):
            run("generate", model, grammar, "a", *draw, *ends, *bias)
        (keywords,) = asked
        assert keywords.pop("logit_bias").tolist() == [0, 0, -math.inf, 0, 2.5, 0, 0, 0, 0, -1, 0, 0, 0]
        assert keywords == {
            **{"temperature": 2.0, "top_k": 7, "top_p": 0.5, "min_p": 0.25},
            **{"max_new_tokens": 9, "min_new_tokens": 3, "stop": ["é", "\n"], "stop_ids": [4]},
        }

    def test_a_text_that_is_stopped_is_no_failure(self, model, tmp_path):
        """The stop ends within the second token `ab`."""
        grammar = write(tmp_path / "free.lark", 'start: ("a" | "b" | "c" | "ab")*')
        options = (
            "--logit-bias",
            "ab=1e9",
            "--stop",
            "c",
            "--stop",
            "ba",
            "--max-new-tokens",
            "40",
            "--json",
        )
        code, out, err = run("generate", model, grammar, "a", *options)
        assert (code, err) == (0, "")
        assert [(r["text"], r["finish"], r["tokens"]) for r in records(out)] == [("aba", "STOP", 2)]

    def test_a_bias_may_name_a_token_with_an_equals_sign(self):
        vocabulary = jaxgcd.Vocabulary([b"=", b"a=b", b"5", b"=", b""], eos=[4], size=8)
        given = cli.drawing.parse_bias(["==1", "a=b=-2", "4=0.5", "==1"])
        how = cli.drawing.Drawing({}, given, samples=1, seed=0, batch_size=1)
        assert how.keywords(vocabulary)["logit_bias"].tolist() == [2, -2, 0, 2, 0.5, 0, 0, 0]

    def test_rows_that_fill_a_batch_draw_nothing(self, model, saved, monkeypatch):
        generate, lengths = jaxgcd.generate, []

        def watched(*arguments, **options):
            output = generate(*arguments, **options)
            lengths.append(output.length.tolist())
            return output

        monkeypatch.setattr(jaxgcd, "generate", watched)
        found = records(run("generate", model, saved[0], "a", "b", "1", *DRAW, "--json")[1])
        assert [record["tokens"] for record in found] == [*lengths[0], lengths[1][0]]
        assert lengths[1][0] > 0 == lengths[1][1]


class TestStream:
    """The same answers, in pieces."""

    def test_one_answer_is_a_text_that_grows(self, model, tmp_path, monkeypatch, capsys):
        """Each piece is shown before the next one is asked for."""
        grammar = write(tmp_path / "long.lark", 'start: ("ab" | "é")~9')
        whole = run("generate", model, grammar, "a", *DRAW)
        stream, shown = jaxgcd.stream, []

        def watched(*args, **options):
            for chunk in stream(*args, **options):
                yield chunk
                shown.append(capsys.readouterr().out)

        monkeypatch.setattr(jaxgcd, "stream", watched)
        with pytest.raises(SystemExit) as end:
            cli.app(["generate", model, grammar, "a", "--stream", *DRAW])
        assert (end.value.code, "".join(shown) + capsys.readouterr().out, "") == whole
        assert len(list(filter(None, shown))) > 1

    def test_pieces_of_batches(self, model, grammar):
        """Five answers to each prompt, in batches of two; some are cut, maybe within a character."""
        options = (
            "-n",
            "5",
            "--temperature",
            "9",
            "--max-new-tokens",
            "6",
            "--batch-size",
            "2",
            "-q",
            "--json",
        )
        code, out, _ = run("generate", model, grammar, "a", "b", *options)
        streamed = run("generate", model, grammar, "a", "b", *options, "--stream")
        pieces: dict[tuple[int, int], list[dict]] = {}
        for piece in records(streamed[1]):
            pieces.setdefault((piece["prompt"], piece["sample"]), []).append(piece)
        assert streamed[0] == code and len(pieces) == len(records(out)) == 10
        assert {record["finish"] for record in records(out)} >= {"EOS", "LENGTH"}
        for record in records(out):
            of_answer = pieces[record["prompt"], record["sample"]]
            assert [piece["finish"] for piece in of_answer] == [None] * (len(of_answer) - 1) + [
                record["finish"]
            ]
            assert [i for piece in of_answer for i in piece["token_ids"]] == record["token_ids"]
            assert "".join(piece["text"] for piece in of_answer) == record["text"]
            assert all(piece["tokens"] == len(piece["token_ids"]) for piece in of_answer)


class TestCompile:
    def test_the_report(self, model, grammar):
        code, out, err = run("compile", grammar, model)
        assert (code, err) == (0, "")
        for word in ("terminals", "suffix classes", "bytes", "spanner, s", "exact"):
            assert word in out

    def test_json(self, model, grammar):
        code, out, _ = run("compile", grammar, model, "--json", "--exact")
        report = json.loads(out)
        tables = jaxgcd.compile_grammar(GRAMMAR, models.load(model, progress=False).vocabulary())
        assert code == 0 and tables.report is not None
        assert report["exact"] is True and report["reasons"] == []
        assert report["counts"] == tables.report.counts
        assert report["seconds"].keys() == tables.report.seconds.keys()

    def test_saved_files_serve_as_arguments(self, model, grammar, saved):
        tables, tokens = saved
        assert jaxgcd.Vocabulary.load(tokens) == models.load_vocabulary(model)
        from_grammar = run("generate", model, grammar, "a", *DRAW)
        assert run("generate", model, tables, "a", *DRAW) == from_grammar
        again = run("compile", grammar, tokens, "--json")
        assert (
            json.loads(again[1])["counts"]
            == json.loads(run("compile", grammar, model, "--json")[1])["counts"]
        )

    def test_a_tokenizer_file(self, model, grammar):
        tokenizer = f"{model}/tokenizer.json"
        of_model = json.loads(run("compile", grammar, model, "--json")[1])["counts"]
        for eos in ("<|end|>", "0"):
            code, out, _ = run("compile", grammar, tokenizer, "--eos", eos, "--json")
            assert (code, json.loads(out)["counts"]) == (0, of_model)

    def test_options(self, model, tmp_path):
        """Lark's basic lexer reads "12" as one token, which no rule takes: its language is another one."""
        grammar = write(tmp_path / "g.lark", 'sum: "1" "2" | "a" BOTH\nBOTH: "12"\n')
        reports = [
            json.loads(run("compile", grammar, model, "--start", "sum", "--json", *more)[1])
            for more in ((), ("--lexer", "basic"), ("--check", "host"), ("--max-depth", "8"))
        ]
        assert reports[0]["counts"]["scanners"] > reports[1]["counts"]["scanners"] == 1
        assert all(report["exact"] for report in reports)

    def test_the_cache(self, model, grammar, tmp_path):
        folder = str(tmp_path / "cache")
        cached = [json.loads(run("compile", grammar, model, "--cache", folder, "--json")[1]) for _ in "12"]
        assert [report["cached"] for report in cached] == [False, True]

    def test_masks_that_are_not_exact(self, tmp_path):
        """No token is "b" alone: after "a" and a blank that may come, nothing spells the end of the text."""
        tokens, grammar = str(tmp_path / "t.jaxgcd"), write(tmp_path / "g.lark", 'start: "a" " "? "b"')
        jaxgcd.Vocabulary([b"a", b" ", b"ab", b""], eos=[3]).save(tokens)
        code, out, err = run("compile", grammar, tokens)
        assert code == 0 and "not exact: no token is the single byte 0x62" in out
        assert err.startswith("jaxgcd: warning: The masks never miss a token")
        code, out, err = run("compile", grammar, tokens, "--exact")
        assert (code, out) == (1, "") and "0x62" in err

    def test_inspect(self, saved, model):
        tables, tokens = saved
        code, out, _ = run("inspect", tables)
        assert code == 0 and "suffix classes" in out and "max depth" in out
        code, out, _ = run("inspect", tokens)
        assert code == 0 and "a vocabulary" in out
        folded = "".join(character for character in out if character in "0123456789abcdef")
        assert models.load_vocabulary(model).fingerprint in folded


class TestProcesses:
    def test_unicode_in_a_plain_locale(self, model, tmp_path):
        """Prompt, grammar and answer hold é; the locale is ASCII, and Python's UTF-8 mode is off."""
        grammar = write(tmp_path / "g.lark", 'start: "é" "ab"')
        plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
        done = run_process("generate", model, grammar, "é a", "--json", "--max-new-tokens", "9", **plain)
        assert done.returncode == 0, done.stderr.decode()
        record = json.loads(done.stdout.decode("utf-8"))
        assert record["text"] == "éab"
        assert "é" in done.stdout.decode("utf-8")

    @pytest.mark.parametrize("form", [[], ["--json"]], ids=["table", "json"])
    def test_a_reader_that_goes_away(self, saved, grammar, form):
        reading, writing = os.pipe()
        os.close(reading)
        command = [sys.executable, "-m", "jaxgcd", "compile", grammar, saved[1], *form]
        done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE)
        os.close(writing)
        assert (done.returncode, done.stderr) == (141, b"")

    @pytest.mark.parametrize(("options", "words"), [([], ["lark", "walk"]), (["--quiet"], [])])
    def test_bars_on_a_terminal(self, saved, grammar, options, words):
        pty, termios = pytest.importorskip("pty"), pytest.importorskip("termios")
        ours, terminal = pty.openpty()
        termios.tcsetwinsize(terminal, (24, 80))
        command = [sys.executable, "-m", "jaxgcd", "compile", grammar, saved[1], *options]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=terminal) as process:
            os.close(terminal)
            shown = read_all(ours)
        assert process.returncode == 0 and all(word in shown for word in words)
        assert bool(shown) == bool(words)

    @pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
    def test_closed_streams(self, saved, model, grammar, closed):
        command = f'"$@" {closed}'
        arguments = [sys.executable, "-m", "jaxgcd", "generate", model, saved[0], "--max-new-tokens", "40"]
        done = subprocess.run(["sh", "-c", command, "sh", *arguments], input=b"a", capture_output=True)
        assert b"Traceback" not in done.stderr and done.returncode == 0, done.stderr
        assert (done.stdout == b"") == (closed == ">&-")


def read_all(terminal: int) -> str:
    """What is written to a terminal until its last writer is gone, which Linux reports as an error."""
    parts = []
    with contextlib.suppress(OSError):
        while part := os.read(terminal, 4096):
            parts.append(part)
    os.close(terminal)
    return b"".join(parts).decode()


@pytest.mark.model
@pytest.mark.prove
def test_smollm2(smollm2_file):
    """The installed model answers in JSON, which the standard library reads."""
    pytest.importorskip("gguf")
    grammar = Path(__file__).parent.parent / "examples" / "json.lark"
    question = "Write a JSON object that describes a person with the keys name, age and city."
    code, out, _ = run("generate", "smollm2", str(grammar), question, "-q", "--max-new-tokens", "64")
    assert code == 0
    assert {"name", "age", "city"} <= json.loads(out).keys()
