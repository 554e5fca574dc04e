"""How a task's command is run: its environment, folder, shell, time limits, retries, container and setup.

>>> Launch(env={"THREADS": "4"}, timeout=("10m", "1h"))
Launch(env={'THREADS': '4'}, timeout=('10m', '1h'))
>>> Launch(timeout=("10m", "1h")).limit(1), Launch(timeout=("10m", "1h")).limit(3)
(600.0, 3600.0)
"""

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from eligo.errors import InputError, shorten

#: the shells that have a name; any other is a list of words, to which the command line is added
SHELLS = ("bash", "sh", "none")
#: what other workflow systems run their command lines with
POSIX = ("/bin/sh", "-c")
#: the keys of `setup` in a document
SETUP = ("conda", "modules")

_UNITS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
_DURATION = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)\s?(s|m|min|h|d|)")
Duration = float | str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Launch:
    """How a task's command is run. A field that is None or empty has the usual value."""

    #: variables added to the environment of the task
    env: Mapping[str, str] = field(default_factory=dict, hash=False)
    #: folder in which the command runs, relative to the folder of the run; it is created
    dir: str | None = None
    #: one of `SHELLS`, or the words before a command line; a list of words is run without a shell
    shell: str | tuple[str, ...] | None = None
    #: time limit in seconds, or such as "5m", or one for each attempt, of which the last repeats
    timeout: Duration | tuple[Duration, ...] | None = None
    #: number of retries of the task if it fails
    retries: int | None = None
    #: image of the container in which the command runs
    container: str | None = None
    #: name or folder of a conda environment
    conda: str | None = None
    #: environment modules to load
    modules: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_environment(self.env)
        for key in ("dir", "container", "conda"):
            if (text := getattr(self, key)) is not None and not _is_word(text):
                raise InputError(f"{key} must be a non-empty string, got {_actual(text)}")
        if self.shell is not None and self.shell not in SHELLS and not _are_words(self.shell):
            raise InputError(f"shell must be {', '.join(SHELLS)}, or a list of words, got {_actual(self.shell)}")
        if self.modules and not _are_words(self.modules):
            raise InputError(f"modules must be a list of strings, got {_actual(self.modules)}")
        if self.retries is not None and (type(self.retries) is not int or self.retries < 0):
            raise InputError(f"retries must be an integer of at least 0, got {_actual(self.retries)}")
        if not _limits(self.timeout) and self.timeout is not None:
            raise InputError("timeout must have at least one time limit")

    def __repr__(self) -> str:
        values = ((each.name, getattr(self, each.name)) for each in fields(self))
        return f"Launch({', '.join(f'{key}={value!r}' for key, value in values if value not in (None, (), {}))})"

    def limit(self, attempt: int) -> float | None:
        """The time limit of an attempt in seconds; None if the task has none of its own."""
        limits = _limits(self.timeout)
        return limits[min(attempt, len(limits)) - 1] if limits else None

    @property
    def is_growing(self) -> bool:
        """Whether the time limit differs between attempts."""
        return len(set(_limits(self.timeout))) > 1

    def document(self) -> dict[str, Any]:
        """The keys of a document of eligo's own that describe it."""
        values = {key: getattr(self, key) for key in LAUNCH_KEYS if key != "setup"}
        values["env"] = dict(self.env)
        values["setup"] = {key: _listed(value) for key in SETUP if (value := getattr(self, key))}
        return {key: _listed(value) for key, value in values.items() if value not in (None, (), {})}

    @property
    def labels(self) -> frozenset[str]:
        """The labels that a server's client must declare to get the task: it applies these keys, and has the programs."""
        demands = {
            "container": bool(self.container),
            "conda": bool(self.conda),
            "modules": bool(self.modules),
            "launch": bool(self.env or self.dir or self.shell not in {None, POSIX}),
        }
        return frozenset(label for label, demanded in demands.items() if demanded)

    def content(self) -> dict[str, Any]:
        """The part of the document that decides what the command does; if it changes, the task runs again."""
        return {key: value for key, value in self.document().items() if key not in {"timeout", "retries"}}


#: the keys of a document that describe it, in the order in which they are written
LAUNCH_KEYS = (*(each.name for each in fields(Launch) if each.name not in SETUP), "setup")


def launch_of(document: Mapping[str, Any]) -> Launch | None:
    """What these keys of a document describe; None if there are none.

    >>> launch_of({"setup": {"conda": "align"}, "dir": None})
    Launch(conda='align')
    """
    values: dict[str, Any] = {key: document[key] for key in LAUNCH_KEYS if document.get(key) is not None}
    setup = values.pop("setup", {})
    if not isinstance(setup, Mapping) or not setup.keys() <= set(SETUP):
        raise InputError(f"setup must be an object with the keys {', '.join(SETUP)}, got {_actual(setup)}")
    values |= {key: value for key, value in setup.items() if value is not None}
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
    launch = Launch(**values)
    return None if launch == Launch() else launch


def seconds_in(duration: object) -> float:
    """A duration in seconds.

    >>> seconds_in(90), seconds_in("1.5h"), seconds_in("5 min")
    (90.0, 5400.0, 300.0)
    """
    match = _DURATION.fullmatch(duration) if isinstance(duration, str) else None
    number = float(match[1]) * _UNITS[match[2]] if match else duration
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 < number < float("inf"):
        raise InputError(
            f"timeout must be a positive number of seconds, or a duration such as 30s, 5m, 2h or 1d, got {_actual(duration)}"
        )
    return float(number)


def _limits(timeout: object) -> list[float]:
    if timeout is None:
        return []
    return [seconds_in(each) for each in (timeout if isinstance(timeout, tuple) else (timeout,))]


def _check_environment(env: object) -> None:
    if not isinstance(env, Mapping):
        raise InputError(f"env must be an object with a string for each variable, got {_actual(env)}")
    for name, word in env.items():
        if not _is_word(name) or "=" in name:
            raise InputError(f"env has the invalid name {_actual(name)} of a variable")
        if not isinstance(word, str) or "\0" in word:
            cure = " (put it in quotes)" if isinstance(word, bool | int | float) else ""
            raise InputError(f"variable {shorten(name)!r} in env must be a string, got {_actual(word)}{cure}")


def _is_word(value: object) -> bool:
    return isinstance(value, str) and value != "" and "\0" not in value


def _are_words(value: object) -> bool:
    return isinstance(value, tuple) and value != () and all(map(_is_word, value))


def _listed(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def _actual(value: object) -> str:
    return shorten(repr(list(value) if isinstance(value, tuple) else value))


# What a machine has

CONTAINER_ENGINES = ("podman", "docker", "apptainer", "singularity")
CONDAS = ("conda", "micromamba", "mamba")
#: where systems keep the definition of `module`
MODULES = ("/etc/profile.d/modules.sh", "/etc/profile.d/lmod.sh")


def own_labels(isolated: bool) -> tuple[str, ...]:
    """What a client on this machine can do, as labels; an *isolated* command sees no programs but the system's.

    Only podman and docker can limit what a container uses, as a client must.
    """
    there = {
        "container": program_for(("podman", "docker")) is not None,
        "conda": program_for(CONDAS) is not None,
        "modules": any(map(os.path.exists, MODULES)),
    }
    return ("launch", *(label for label, has in there.items() if has and not isolated))


def program_for(programs: Sequence[str]) -> str | None:
    """The path of the first of these programs that this machine has; None if it has none."""
    return next(filter(None, map(shutil.which, programs)), None)
