"""A CMake project of any size, made up: libraries that need each other, programs, and files that programs make.

Each library has some sources, one of them long; every third one has a header that a script makes. A program is made of the
first half of them, and writes a source of each in the second half, so that these wait for it, as with generators of code.
"""

from pathlib import Path

HEAD = """cmake_minimum_required(VERSION 3.16)
project(made C)
set(CMAKE_C_FLAGS "-O1")
include_directories(include ${CMAKE_BINARY_DIR}/made)
"""

WRITER = """#include <stdio.h>
int main(int n, char **v) {
  FILE *f = fopen(v[1], "w");
  fprintf(f, "int %s(int x) { return x; }\\n", v[2]);
  return fclose(f);
}
"""


def write_project(folder: Path, libraries: int = 30, sources: int = 34) -> None:
    """Write a project with these numbers of libraries and of sources per library."""
    (folder / "include").mkdir(parents=True)
    (folder / "include" / "all.h").write_text("int work(int);\n", "utf-8")
    (folder / "make.sh").write_text('#!/bin/sh\nsleep 0.05\nprintf "#define %s %s\\n" "$2" "$3" > "$1"\n', "utf-8")
    lines = [HEAD]
    for i in range(libraries):
        lines += _library(folder, i, libraries, sources)
    first = " ".join(f"lib{i}" for i in range(libraries // 2))
    (folder / "writer.c").write_text(WRITER, "utf-8")
    (folder / "main.c").write_text("int lib0_0(int); int main(void) { return lib0_0(0) < 0; }\n", "utf-8")
    lines.append(f"add_executable(writer writer.c)\ntarget_link_libraries(writer {first})\n")
    every = " ".join(f"lib{i}" for i in range(libraries))
    for name in ("one", "two", "three"):
        lines.append(f"add_executable({name} main.c)\ntarget_link_libraries({name} {every})\n")
    (folder / "CMakeLists.txt").write_text("".join(lines), "utf-8")


def _library(folder: Path, i: int, libraries: int, sources: int) -> list[str]:
    """Write the sources of a library; the lines that describe it."""
    place = folder / f"lib{i}"
    place.mkdir()
    lines, files = [], [f"lib{i}/{j}.c" for j in range(sources)]
    header = i % 3 == 0
    for j in range(sources):
        body = _source(
            f"lib{i}_{j}", long=400 if j == 0 else 10 + 7 * ((i + j) % 5), header=f"h{i}.h" if header else "all.h"
        )
        (place / f"{j}.c").write_text(body, "utf-8")
    if header:
        lines.append(f"add_custom_command(OUTPUT made/h{i}.h DEPENDS ${{CMAKE_SOURCE_DIR}}/make.sh\n"
                     f"  COMMAND sh ${{CMAKE_SOURCE_DIR}}/make.sh made/h{i}.h H{i} {i})\n")  # fmt: skip
        files.append(f"${{CMAKE_BINARY_DIR}}/made/h{i}.h")
    if i >= libraries // 2:
        lines.append(f"add_custom_command(OUTPUT w{i}.c COMMAND writer w{i}.c written{i} DEPENDS writer)\n")
        files.append(f"w{i}.c")
    lines.append(f"add_library(lib{i} STATIC {' '.join(files)})\n")
    if i > 2:
        lines.append(f"target_link_libraries(lib{i} lib{i - 1} lib{i // 2})\n")
    return lines


def _source(name: str, long: int, header: str) -> str:
    steps = "".join(
        f"static int s{k}(int x) {{ for (int i = 0; i < x; i++) x ^= i * {k}; return x + {k}; }}\n" for k in range(long)
    )
    calls = " + ".join(f"s{k}(x)" for k in range(long))
    return f'#include <stdio.h>\n#include <stdlib.h>\n#include "{header}"\n{steps}int {name}(int x) {{ return {calls}; }}\n'
