"""Texts that the fuzzer broke a parser with, each a test since; and that the fuzzer says what it found."""

import importlib.util
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from eligo import formats
from eligo.errors import InputError
from eligo.formats.shared import yaml_text


@pytest.mark.parametrize("word", ["2e8 %a", "6e66 x", "1e0:84m b", "1e5_", "0x_", "0b__", "-0x_"])
def test_a_yaml_word_that_begins_like_a_number_is_a_word(word: str) -> None:
    assert yaml_text.load(f"key: {word}") == {"key": word}


@pytest.mark.parametrize(("word", "number"), [("2e8", 2e8), ("-1.5E-3", -0.0015), ("+.5e1", 5.0), ("0x1_0", 16)])
def test_a_yaml_number_is_one_to_its_end(word: str, number: float) -> None:
    assert yaml_text.load(f"key: {word}") == {"key": number}


#: (the format, the text)
FOUND = [
    ("yaml", 'name: four\ntasks:\n- {name: a, run: "act x > y", memory: 1e0:84m b, after: [a]}\n- {name: loks:\n'),
    ("pegasus", "pegasus: '5.0'\njobs:\n- {id: 2e8 %a, name: 0x_}\n"),
]  # fmt: skip


@pytest.mark.parametrize(("format", "text"), FOUND)
def test_what_was_found(format: str, text: str) -> None:
    with suppress(InputError):
        formats.parse(text, format)


@pytest.fixture
def fuzzing() -> Any:
    """The program, as a module."""
    place = Path(__file__).parent / "fuzz" / "fuzz_formats.py"
    spec = importlib.util.spec_from_file_location("fuzz_formats", place)
    assert spec is not None
    assert spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    return program


@pytest.mark.parametrize("format", formats.MODULES)
def test_fuzzing_begins_with_texts_that_are_read(fuzzing: Any, format: str) -> None:
    assert all(len(formats.parse(text, format)) for text in fuzzing.seeds(format))


def test_the_table_says_why(fuzzing: Any) -> None:
    thrown = " === Uncaught Python exception: ===\nValueError: no number\nTraceback\n==9== ERROR: libFuzzer: exited\n"
    written = "artifact_prefix='out/fuzz/x-'; Test unit written to out/fuzz/x-crash-1\nBase64: eA==\n"
    assert fuzzing.outcome(thrown + written) == "ValueError: no number, in out/fuzz/x-crash-1"
    assert fuzzing.outcome("==9== ERROR: libFuzzer: timeout after 10 seconds\n") == "timeout after 10 seconds"
    assert fuzzing.outcome("INITED\nDone 12 runs in 1 second(s)\n") == "Done 12 runs in 1 second(s)"
    code, said = fuzzing.run(["sleep", "9"], 1)
    assert (code, fuzzing.outcome(said)) == (1, "TimeoutExpired: no end after 1 seconds")
