"""Files as text: compressions, encodings, limits, and the files beside one that is read."""

import gzip
import io
import sys
import time
import tracemalloc
from pathlib import Path

import pytest

from eligo import formats
from eligo.dag import Dag
from eligo.errors import FormatError
from eligo.formats.detection import WORDS
from eligo.formats.shared import files
from eligo.formats.shared.files import Beside, load, load_any, plain_name, save

zstd = files._zstd()


@pytest.mark.parametrize("suffix", ["json", "arcs.gz", "arcs.zst", "json.ZST", "dag.zst", "yaml.zst"])
def test_files_are_compressed_by_their_names(tmp_path: Path, suffix: str, diamond: Dag) -> None:
    path = tmp_path / f"flow.{suffix}"
    formats.write(diamond, path)
    assert formats.read(path).dag == diamond
    assert path.read_bytes().startswith(b"\x28\xb5\x2f\xfd") == suffix.lower().endswith("zst")
    again = path.read_bytes()
    formats.write(diamond, path)
    assert path.read_bytes() == again


def test_compression_is_known_by_the_first_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = zstd.compress(b"a b\n") + zstd.compress(b"b c\n")
    (tmp_path / "flow.arcs").write_bytes(packed)
    assert list(formats.read(tmp_path / "flow.arcs").dag.arcs()) == [("a", "b"), ("b", "c")]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(packed)))
    assert len(formats.read("-")) == 3


@pytest.mark.parametrize("cut", [5, 12, -1])
def test_damaged_zstd(tmp_path: Path, cut: int) -> None:
    (tmp_path / "f.arcs").write_bytes(zstd.compress(b"a b\n" * 100)[:cut])
    with pytest.raises(FormatError, match=r"f\.arcs: the zstd data are damaged: "):
        formats.read(tmp_path / "f.arcs")


@pytest.mark.parametrize("kind", ["gz", "zst"])
def test_bombs_of_bytes_are_refused_soon(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"f.arcs.{kind}"
    if kind == "gz":
        path.write_bytes(gzip.compress(b" " * 2**27))
    else:
        with zstd.open(path, "wb") as file:
            for _ in range(16):
                file.write(b" " * 2**24)
    assert path.stat().st_size < 2**19
    tracemalloc.start()
    begin = time.process_time()
    with pytest.raises(FormatError, match="has more than the limit of 10,000,000 bytes"):
        load(str(path), 10_000_000)
    assert time.process_time() - begin < 60  # it ends; how soon is for the benchmarks
    assert tracemalloc.get_traced_memory()[1] < 50_000_000
    tracemalloc.stop()


def test_zstd_that_wants_a_huge_window_is_refused(tmp_path: Path) -> None:
    """A frame may ask for gigabytes before it says anything."""
    options = {zstd.CompressionParameter.window_log: 30, zstd.CompressionParameter.enable_long_distance_matching: 1}
    packer = zstd.ZstdCompressor(options=options)
    (tmp_path / "f.arcs").write_bytes(packer.compress(b"a b\n" * 1000) + packer.flush())
    with pytest.raises(FormatError, match=r"the zstd data are damaged: .*too much memory"):
        formats.read(tmp_path / "f.arcs")


def test_zstd_is_imported_only_when_needed() -> None:
    import subprocess

    code = "import sys, eligo.formats as f; f.parse('a b'); print(any('zstd' in name for name in sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out == "False\n"


def test_names_without_their_compression() -> None:
    assert [plain_name(name) for name in ("a.dag.gz", "a.ZST", "gz", "a.gz.dag")] == ["a.dag", "a", "gz", "a.gz.dag"]


# Encodings


def test_latin_1_is_read_where_a_format_has_no_encoding(tmp_path: Path) -> None:
    path = tmp_path / "f.dag"
    path.write_bytes("JOB café x\r\nJOB b x\r\nPARENT café CHILD b\r\n".encode("latin-1"))
    flow = formats.read(path)
    assert flow.dag.tasks == ("café", "b")
    assert flow.origin is not None
    assert flow.origin.encoding == "latin-1"
    assert flow.origin.remarks == (f"{path} is not UTF-8 and was read as Latin-1",)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("f.arcs", "café b"),
        ("f.csv", "parent,child\ncafé,b"),
        ("f.dot", "digraph { café -> b }"),
        ("f.mf", "café : x\n\tmake café\nb : café\n\tmake b\n"),
        ("f.xml", '<?xml version="1.0" encoding="ISO-8859-1"?><graphml><graph edgedefault="directed"><node id="café"/>'
         '<node id="b"/><edge source="café" target="b"/></graph></graphml>'),
    ],
)  # fmt: skip
def test_latin_1_is_read_in_formats_that_are_not_utf_8(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_bytes(text.encode("latin-1"))
    flow = formats.read(tmp_path / name)
    assert list(flow.dag.arcs()) == [("café", "b")]
    assert flow.origin is not None
    assert "was read as Latin-1" in flow.origin.remarks[0]


def test_latin_1_is_refused_in_json(tmp_path: Path) -> None:
    (tmp_path / "f.json").write_bytes('{"nodes":\n["é"]}'.encode("latin-1"))
    with pytest.raises(FormatError, match=r"f\.json:2: byte 12 \(0xe9\) is not UTF-8 \(save the file as UTF-8\)$"):
        formats.read(tmp_path / "f.json")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize(
    ("suffix", "text"),
    [("dag", "JOB é x\n"), ("json", '{"nodes": ["é"]}'), ("arcs", "é\r\n"), ("csv", "parent,child\r\né,\r\n")],
)
def test_utf_16_with_a_mark_is_text(tmp_path: Path, suffix: str, text: str, encoding: str) -> None:
    path = tmp_path / f"f.{suffix}"
    path.write_bytes(f"\ufeff{text}".encode(encoding))
    flow = formats.read(path)
    assert flow.dag.tasks == ("é",)
    assert flow.origin is not None
    assert (flow.origin.encoding, flow.origin.remarks) == (encoding, ())


def test_utf_16_without_a_mark_or_with_half_a_sign_is_refused(tmp_path: Path) -> None:
    (tmp_path / "f.dag").write_bytes("JOB a x".encode("utf-16-le"))
    with pytest.raises(FormatError, match=r"f.dag:1: byte 1 is NUL: not a text file$"):
        formats.read(tmp_path / "f.dag")
    (tmp_path / "f.dag").write_bytes("JOB a x".encode("utf-16")[:-1])
    with pytest.raises(FormatError, match=r"f.dag: byte 14 is not UTF-16, although the file is marked as UTF-16"):
        formats.read(tmp_path / "f.dag")
    (tmp_path / "f.dag").write_bytes("JOB a\0x".encode("utf-16"))
    with pytest.raises(FormatError, match=r"f.dag:1: contains NUL: not a text file$"):
        formats.read(tmp_path / "f.dag")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("f.dag", "JOB a x\nJOB b x\nPARENT a CHILD b\n"),
        ("f.json", '{"arcs":\n[["a",\n"b"]]}\n'),
        ("f.arcs", "a b\n"),
        ("f.yaml", "arcs:\n- [a, b]\n"),
    ],
)
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_line_ends_and_marks_make_no_difference(tmp_path: Path, name: str, text: str, mark: bytes, end: str) -> None:
    (tmp_path / name).write_bytes(mark + text.replace("\n", end).encode())
    assert list(formats.read(tmp_path / name).dag.arcs()) == [("a", "b")]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a\n\0", "byte 2 is NUL: not a text file"),
        (b" \n", "the file is empty"),
        (b"\xe9\0", "byte 1 .0x00. is not a valid character: not a text file"),
    ],
)
def test_what_is_no_text(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "f.dag").write_bytes(data)
    with pytest.raises(FormatError, match=message):
        load_any(str(tmp_path / "f.dag"))


def test_half_a_pair_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"cannot be written: '.ud800' is not a valid character"):
        save("\ud800", str(tmp_path / "f"))


# The files beside one


def test_names_count_from_the_folder_of_the_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "x").write_text("here")
    monkeypatch.chdir(tmp_path)
    assert Beside("sub/root").place("x") == "sub/x"
    assert Beside("root").place("x", "sub") == "sub/x"
    assert Beside("root").place("../sub/x", "sub") == "sub/x"
    assert Beside("sub/root").load("sub/x") == "here"
    assert sorted(Beside("root").names()) == ["sub"]
    assert Beside("none/root").names() == []


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "sub/../../x", "a\0b"])
def test_names_that_climb_out(tmp_path: Path, name: str) -> None:
    with pytest.raises(FormatError, match="is outside the folder of"):
        Beside(str(tmp_path / "root")).place(name)


def test_allowed_to_go_outside(tmp_path: Path) -> None:
    assert Beside(str(tmp_path / "root"), allow_outside=True).place("../x") == str(tmp_path.parent / "x")
    assert Beside(None, allow_outside=True).place("x") == "x"


def test_standard_input_has_no_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "in.dag").write_text("JOB a x")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\nINCLUDE in.dag")))
    with pytest.raises(FormatError, match=r"^<stdin>:2: refers to the file 'in\.dag', but standard input has no"):
        formats.read("-", "dagman")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"INCLUDE in.dag")))
    assert formats.read("-", "dagman", allow_outside=True).dag.tasks == ("a",)


def test_all_files_share_one_limit(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).write_text("x" * 40)
    beside = Beside(str(tmp_path / "root"), limit=100)
    for name in "aabb":
        assert len(beside.load(beside.place(name))) == 40
    with pytest.raises(FormatError, match="c: has 40 bytes, more than the limit of 20"):
        beside.load(beside.place("c"))


# What is lost


def test_every_format_says_what_it_cannot_hold_in_the_same_words() -> None:
    for name in formats.MODULES:
        assert set(formats.module(name).CANNOT) <= WORDS.keys(), name


def test_only_what_is_there_is_lost() -> None:
    flow = formats.parse(
        '{"name": "n", "tasks": [{"name": "a", "run": "ls", "cores": 2}, {"name": "b", "run": "ls", "seconds": 1}]}'
    )
    assert formats.lost(flow, "json") == []
    assert formats.lost(flow, "arcs") == [
        "the workflow's name",
        "commands (2 tasks)",
        "run times (1 task)",
        "cores (1 task)",
    ]
    assert formats.lost(flow, "wfcommons") == ["commands (1 task)", "cores (1 task)"]
    assert files.LARGEST_FILE == 2**30


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_what_grows_without_measure_is_refused_before_it_is_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    monkeypatch.setattr("eligo.formats.shared.files.LARGEST_GROWN", 10_000)
    path = tmp_path / f"f.arcs{suffix}"
    formats.write(Dag.from_arcs([("a", "b")]), path)
    assert list(formats.read(path).dag.arcs()) == [("a", "b")]
    save("a" * 1_000_000, str(path))
    with pytest.raises(FormatError, match="decompresses to more than 50 times its size"):
        formats.read(path)
