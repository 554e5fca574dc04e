"""A small telescope's work: overlapping shots of one scene, each with its own brightness, put together into one picture.

Each step is a command of its own, as mosaic.yaml has them: take, differ, fit, correct, add, stretch, shrink. The environment
variable SHOT is the width of a shot in pixels.
"""

import json
import os
import struct
import sys
import zlib
from array import array
from pathlib import Path

COLUMNS, ROWS = 4, 3
SIZE = int(os.environ.get("SHOT", "150"))
OVERLAP = SIZE // 5
STEP = SIZE - OVERLAP
WIDTH, HEIGHT = COLUMNS * STEP + OVERLAP, ROWS * STEP + OVERLAP
MOST = 90  # turns after which a point of the scene counts as dark

Image = list["array[float]"]


def take(column: str, row: str) -> None:
    """One shot of the scene, with its own brightness."""
    left, top = int(column) * STEP, int(row) * STEP
    glow = 20.0 * ((7 * int(column) + 11 * int(row)) % 5 - 2)
    shot = [array("f", (scene(left + x, top + y) + glow for x in range(SIZE))) for y in range(SIZE)]
    save(shot, f"shot-{column}-{row}.img")


def scene(x: int, y: int) -> float:
    """The brightness of the sky at a point: the edge of the Mandelbrot set."""
    c = complex(-0.7463 + (x / WIDTH - 0.5) * 0.012, 0.1102 + (y / HEIGHT - 0.5) * 0.009)
    z, turns = 0j, 0
    while turns < MOST and z.real * z.real + z.imag * z.imag < 4:
        z, turns = z * z + c, turns + 1
    return 128 + 127 * turns / MOST if turns < MOST else 100.0


def differ(one: str, other: str) -> None:
    """How much brighter a shot is than its neighbour, where both see the same."""
    first, second = load(f"shot-{one}.img"), load(f"shot-{other}.img")
    if one.split("-")[1] == other.split("-")[1]:
        pairs = [(first[y][STEP + x], second[y][x]) for y in range(SIZE) for x in range(OVERLAP)]
    else:
        pairs = [(first[STEP + y][x], second[y][x]) for y in range(OVERLAP) for x in range(SIZE)]
    mean = sum(a - b for a, b in pairs) / len(pairs)
    Path(f"diff-{one}-{other}.json").write_text(json.dumps([one, other, mean]))


def fit(*files: str) -> None:
    """The brightness of every shot that explains all the differences best."""
    known = [json.loads(Path(file).read_text()) for file in files]
    glow = {name: 0.0 for one, other, _ in known for name in (one, other)}
    for _ in range(500):
        for name in glow:
            wanted = [glow[b] + d for a, b, d in known if a == name] + [glow[a] - d for a, b, d in known if b == name]
            glow[name] = sum(wanted) / len(wanted)
    Path("glow.json").write_text(json.dumps(glow))


def correct(name: str) -> None:
    """A shot without its own brightness."""
    glow = json.loads(Path("glow.json").read_text())
    shift = glow[name] - sum(glow.values()) / len(glow)
    save([array("f", (value - shift for value in line)) for line in load(f"shot-{name}.img")], f"right-{name}.img")


def add() -> None:
    """All shots in one picture."""
    whole = [array("f", bytes(4 * WIDTH)) for _ in range(HEIGHT)]
    for column in range(COLUMNS):
        for row in range(ROWS):
            for y, line in enumerate(load(f"right-{column}-{row}.img")):
                whole[row * STEP + y][column * STEP : column * STEP + SIZE] = line
    save(whole, "mosaic.img")


def stretch() -> None:
    """The whole range from black to white, as a PNG."""
    png(load("mosaic.img", WIDTH), "mosaic.png")


def shrink() -> None:
    """Shrink an image, for a list."""
    png([line[::4] for line in load("mosaic.img", WIDTH)[::4]], "small.png")


def png(image: Image, name: str) -> None:
    """Write grey values between the least and the most of an image."""
    low, high = min(map(min, image)), max(map(max, image))
    lines = b"".join(b"\0" + bytes(int(255 * (v - low) / (high - low)) for v in line) for line in image)
    head = struct.pack(">IIBBBBB", len(image[0]), len(image), 8, 0, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(lines)), (b"IEND", b""))
    chunks = (struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d)) for k, d in parts)
    Path(name).write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunks))


def save(image: Image, name: str) -> None:
    """Write an image."""
    Path(name).write_bytes(b"".join(line.tobytes() for line in image))


def load(name: str, width: int = SIZE) -> Image:
    """Read an image."""
    values = array("f")
    values.frombytes(Path(name).read_bytes())
    return [values[i : i + width] for i in range(0, len(values), width)]


if __name__ == "__main__":
    steps = {step.__name__: step for step in (take, differ, fit, correct, add, stretch, shrink)}
    steps[sys.argv[1]](*sys.argv[2:])
