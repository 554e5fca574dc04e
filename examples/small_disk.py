"""Two mosaics on a disk that holds one at a time: first come, first served fills it, `--space` does not.

The disk is a tmpfs in a mount namespace of its own. Where that is not allowed, nothing is mounted, and the bytes between
tasks show the difference.
"""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
SHOT = 64  # pixels, so that an image fills whole blocks of the disk
BLOCK = 4096  # bytes
IMAGE, MOSAIC = 4 * BLOCK, 37 * BLOCK
NIGHTS = ("night-1", "night-2")
LIMIT, DISK = "344k", "480k"  # of the files between tasks, and of the tmpfs with the pictures, rounded to whole blocks
ENTER = ["unshare", "--mount", *(["--map-root-user"] if os.geteuid() else [])]
MOUNT = 'mount -t tmpfs -o size="$1" none "$0" && shift && exec "$@"'


def main(place: str) -> int:
    """Run both ways on a small disk, or without one if none can be mounted."""
    folder = Path(place).resolve()
    (folder / "disk").mkdir(parents=True)
    inside = [*ENTER, "sh", "-c", MOUNT, str(folder / "disk"), DISK]
    if shutil.which("unshare") and not subprocess.run([*inside, "true"], check=False, capture_output=True).returncode:
        print(f"a disk of {DISK} bytes", flush=True)
        return subprocess.run([*inside, sys.executable, __file__, str(folder), "mounted"], check=False).returncode
    print("note: no tmpfs can be mounted here, so the disk cannot overflow: compare the bytes of both", flush=True)
    return both_ways(folder, overflows=False)


def both_ways(folder: Path, *, overflows: bool) -> int:
    """0 if first come, first served fills the disk, or there is none, and the run with a limit ends well."""
    first = run(folder, "--policy", "fifo", "--clean", "--max-failures", "1")
    limited = run(folder, "--space", LIMIT, "--clean")
    pictures = [folder / "disk" / night / "mosaic.png" for night in NIGHTS]
    return int(bool(first) != overflows or limited != 0 or not all(picture.exists() for picture in pictures))


def run(folder: Path, *options: str) -> int:
    """Run the two nights on the empty disk; returns the exit code."""
    disk = folder / "disk"
    for old in disk.iterdir():
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    shutil.copy(HERE / "mosaic" / "mosaic.py", disk)
    (disk / "nights.yaml").write_text(yaml.safe_dump(nights()))
    record = folder / ("limited.run" if "--space" in options else "fifo.run")
    words = ["run", "nights.yaml", "--workers", "2", "--retries", "0", "--run", str(record), "--quiet", *options]
    print(f"$ eligo {' '.join(('run', 'nights.yaml', *options))}", flush=True)
    code = subprocess.run([sys.executable, "-m", "eligo", *words], cwd=disk, check=False).returncode
    causes = {path.read_text().rstrip().rpartition("\n")[2] for path in record.glob("logs/*/*.err")} - {""}
    print("\n".join((*sorted(causes)[:1], f"exit code {code}")), flush=True)
    return code


def nights() -> dict[str, Any]:
    """The workflow of the mosaic once for each night, each in a folder of its own, with the sizes of its files."""
    rows = yaml.safe_load((HERE / "mosaic" / "mosaic.yaml").read_text())["tasks"]
    tasks = [moved(row, night) for night in NIGHTS for row in rows]
    sizes = {file: size_of(file) for task in tasks for file in task["outputs"]}
    return {"tasks": tasks, "files": sizes, "defaults": {"env": {"SHOT": str(SHOT)}}}


def moved(row: dict[str, Any], night: str) -> dict[str, Any]:
    """A task of the mosaic, in the folder of a night."""
    return {
        "name": f"{night}-{row['name']}",
        "run": row["run"].replace("python3 mosaic.py", f"{shlex.quote(sys.executable)} ../mosaic.py"),
        "dir": night,
        "after": [f"{night}-{task}" for task in row.get("after", ())],
        "inputs": [file if file == "mosaic.py" else f"{night}/{file}" for file in row["inputs"]],
        "outputs": [f"{night}/{file}" for file in row["outputs"]],
    }


def size_of(file: str) -> int:
    """The bytes of a file of the mosaic, rounded up to whole blocks."""
    if file.endswith("mosaic.img"):
        return MOSAIC
    return IMAGE if file.endswith(".img") else BLOCK


if __name__ == "__main__":
    sys.exit(both_ways(Path(sys.argv[1]), overflows=True) if "mounted" in sys.argv else main(sys.argv[1]))
