"""Experiments as data: dags x schedulers x games x seeds, and the file that describes them.

    name: meshes and one workflow
    dags:
    - pipeline.json
    - {family: out-mesh, sizes: [10, 20, 40]}
    - {family: composition, sizes: [[w, 500], [m, 500]], seed: 3}
    schedulers: [balanced, ready, fifo, greedy, my.order]
    games:
      pebble: {}
      batched: {rates: [2, 8, 32, 128]}
      volatile: {count: 16, rules: prudent}
      steady: {workers: [4, 16]}
      space: {}
    runs: 50
    seeds: [0]

Paths are relative to the experiment's file. A family has one dag for each entry of `sizes`: a number, or a list if the family
takes several. A scheduler is one of `eligo.simulation.SCHEDULERS` or a file with an order. `rates` are mean numbers of
requests per poll. The settings of `volatile` are the fields of `eligo.simulation.Clients`; `rules`, none or prudent (what
eligo's server does about slow clients); and `times`, recorded, drawn (around the recorded ones) or equal. A list of settings
is played one by one. `steady` takes numbers of equal workers that stay; it is played only if the seconds of every task are
known. `space` is played only if sizes of files between tasks are known.
"""

import inspect
import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import product
from typing import Any, NamedTuple

from eligo.allocating import PRUDENT, Rules
from eligo.border import with_history
from eligo.errors import FormatError, InputError, shorten
from eligo.families import FAMILIES
from eligo.formats import read
from eligo.formats.reader import read_loaded
from eligo.formats.shared.document import MisfitError, kind, misfits_in
from eligo.formats.shared.files import load_any
from eligo.formats.shared.yaml_text import load as load_yaml
from eligo.policies import OLD_NAMES
from eligo.pools import MOST_WORKERS
from eligo.simulation import SCHEDULERS, Clients
from eligo.workflow import Workflow

KEYS = ("name", "dags", "policies", "schedulers", "games", "runs", "seeds")
DAG_KEYS = ("file", "family", "sizes", "seed")
RULES = {"none": Rules(), "prudent": PRUDENT}
TIMES = ("recorded", "drawn", "equal")
CLIENTS = tuple(field.name for field in fields(Clients))
GAMES = ("pebble", "batched", "volatile", "steady", "space")
RATES = (2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)
WORKERS = (4, 16, 64)
RUNS = 50  # as in the comparison paper
MOST_RUNS = 1_000_000
MOST_CELLS = 1_000_000

Size = int | float | str
Setting = tuple[tuple[str, Any], ...]


@dataclass(frozen=True, kw_only=True)
class Source:
    """The source of a dag: a file, or a family with its sizes."""

    label: str
    path: str | None = None
    family: str = ""
    sizes: tuple[Size, ...] = ()
    seed: int = 0
    #: whether every arc of the file is reversed
    reverse: bool = False
    #: files or folders with the run times of tasks in earlier runs
    histories: tuple[str, ...] = ()

    @classmethod
    def of_file(cls, path: str, folder: str = "", reverse: bool = False) -> "Source":
        """The source for a file; its label is the path as given."""
        label = f"{path} reversed" if reverse else path
        return cls(label=label, path=os.path.join(folder, path), reverse=reverse)

    @classmethod
    def of_family(cls, family: str, sizes: Sequence[Size], seed: int = 0) -> "Source":
        """The source for a dag of a family; its label is the family, the sizes and the seed."""
        words = " ".join(map(str, (family, *sizes)))
        return cls(label=f"{words} seed {seed}" if seed else words, family=family, sizes=tuple(sizes), seed=seed)

    def load(self) -> Workflow:
        """Load the workflow, with the run times of earlier runs."""
        return with_history(self._read(), *self.histories)

    def _read(self) -> Workflow:
        if self.path is not None:
            return read(self.path, reverse=self.reverse)
        if self.family not in FAMILIES:
            raise InputError(f"unknown family {shorten(self.family)!r}").cured_by("family")
        function = FAMILIES[self.family]
        named = {"seed": self.seed} if "seed" in inspect.signature(function).parameters else {}
        try:
            inspect.signature(function).bind(*self.sizes, **named)
        except TypeError as error:
            raise InputError(f"{self.label}: wrong sizes for the family {self.family}: {error}") from None
        return Workflow(function(*self.sizes, **named), name=self.label)


class Game(NamedTuple):
    """A game with its settings."""

    name: str
    setting: Setting = ()

    @property
    def label(self) -> str:
        """The settings as short text, without spaces around the equals sign.

        >>> Game("batched", (("rate", 8.0),)).label
        'rate=8'
        """
        parts = (f"{key}={value:g}" if isinstance(value, float) else f"{key}={value}" for key, value in self.setting)
        return " ".join(parts)

    @property
    def rate(self) -> float:
        """The mean number of requests per poll, where requests come in batches (`batched`)."""
        return float(dict(self.setting)["rate"])

    @property
    def workers(self) -> int:
        """The number of workers, where a game has a fixed number of them (`steady`)."""
        return int(dict(self.setting)["workers"])


class Cell(NamedTuple):
    """One cell of an experiment: the runs of a game on a dag under one policy."""

    source: Source
    scheduler: str
    game: Game
    seed: int
    runs: int


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """The games to be played; `cells` lists them all."""

    sources: tuple[Source, ...]
    schedulers: tuple[str, ...]
    games: tuple[Game, ...]
    runs: int = RUNS
    seeds: tuple[int, ...] = (0,)
    name: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "schedulers", tuple(OLD_NAMES.get(name, name) for name in self.schedulers))
        for what in ("sources", "schedulers", "games", "seeds"):
            if not getattr(self, what):
                raise InputError(f"an experiment needs at least one of its {'dags' if what == 'sources' else what}")
        _refuse_twice("dag", [source.label for source in self.sources])
        _refuse_twice("policy", self.schedulers)
        for name in self.schedulers:
            check_scheduler(name)
        if len(self.sources) * len(self.schedulers) * len(self.games) * len(self.seeds) > MOST_CELLS:
            raise InputError(
                f"the experiment has more than {MOST_CELLS:,} cells (choose fewer dags, settings or seeds)"
            )
        if not 1 <= self.runs <= MOST_RUNS:
            raise InputError(f"runs must be an integer from 1 to {MOST_RUNS:,}, got {self.runs}")
        if any(seed < 0 for seed in self.seeds):
            raise InputError(f"a seed must be a non-negative integer, got {min(self.seeds)}")

    def cells(self) -> Iterator[Cell]:
        """Yield every cell, dag by dag."""
        for source, game, seed, name in product(self.sources, self.games, self.seeds, self.schedulers):
            yield Cell(source, name, game, seed, self.runs)


def check_scheduler(name: str) -> None:
    """Raise an error for a scheduler that is neither a known name nor a file."""
    if name not in SCHEDULERS and not os.path.isfile(name):
        raise InputError(
            f"unknown policy {shorten(name)!r} (choose from {', '.join(SCHEDULERS)}, or give a file with an order)"
        )


def batched_games(rates: Iterable[float]) -> tuple[Game, ...]:
    """The batched game at each of these rates, which must be positive and finite.

    >>> [game.label for game in batched_games([2, 0.5])]
    ['rate=2', 'rate=0.5']
    """
    games = tuple(Game("batched", (("rate", float(rate)),)) for rate in rates)
    for game in games:
        if not 0 < game.rate < math.inf:
            raise InputError(f"a rate must be a positive, finite number of requests, got {game.rate:g}")
    return games


def steady_games(workers: Iterable[object]) -> tuple[Game, ...]:
    """The game with equal, steady workers, for each of these numbers.

    >>> [game.label for game in steady_games([4, 16])]
    ['workers=4', 'workers=16']
    """
    games = []
    for count in workers:
        if type(count) is not int or not 1 <= count <= MOST_WORKERS:
            raise InputError(f"workers must be an integer from 1 to {MOST_WORKERS:,}, got {shorten(str(count))}")
        games.append(Game("steady", (("workers", count),)))
    return tuple(games)


def volatile_game(**settings: Any) -> Game:
    """The game with clients that come and go; settings not given have the defaults of `eligo.simulation.Clients`.

    >>> volatile_game(count=4, rules="prudent").label
    'count=4 rules=prudent'
    """
    for key in settings:
        if key not in (*CLIENTS, "rules", "times"):
            raise InputError(
                f"unknown setting {shorten(key)!r} of clients (choose from {', '.join(CLIENTS)}, rules and times)"
            )
    game = Game("volatile", tuple(settings.items()))
    crowd_of(game)
    return game


def crowd_of(game: Game) -> tuple[Clients, Rules, str]:
    """The clients of a volatile game, the server's rules, and the kind of the tasks' times."""
    settings = dict(game.setting)
    rules, times = settings.pop("rules", "none"), settings.pop("times", "recorded")
    if rules not in RULES:
        raise InputError(f"rules must be {' or '.join(RULES)}, got {shorten(str(rules))!r}")
    if times not in TIMES:
        raise InputError(f"times must be {', '.join(TIMES[:-1])} or {TIMES[-1]}, got {shorten(str(times))!r}")
    if not isinstance(settings.get("count", 1), int):
        raise InputError(f"the count of clients must be an integer, got {settings['count']!r}")
    try:
        return Clients(**settings), RULES[rules], times
    except TypeError as error:
        raise InputError(f"invalid settings for clients: {error}") from None


# Reading


def read_compared(path: str, reverse: bool = False) -> Experiment | Workflow:
    """Read a file: an experiment if it is YAML with the key dags, policies or games, otherwise a workflow."""
    loaded = load_any(path)
    lines = loaded.text.splitlines() if path.endswith((".yaml", ".yml")) else ()
    if not any(line.startswith(("dags:", "policies:", "schedulers:", "games:")) for line in lines):
        return read_loaded(loaded, path, reverse=reverse)
    try:
        return parse_experiment(loaded.text, os.path.dirname(path))
    except FormatError as error:
        raise FormatError(error.message, error.path or path, error.line) from None
    except InputError as error:
        raise error.located(path) from None


def parse_experiment(text: str, folder: str = "") -> Experiment:
    """The experiment that a text describes; its paths are relative to the folder.

    >>> found = parse_experiment("dags: [{family: w, sizes: [[3, 2]]}]\\nschedulers: [fifo]\\ngames: {pebble: {}}")
    >>> [source.label for source in found.sources], found.games, found.runs
    (['w 3 2'], (Game(name='pebble', setting=()),), 50)
    """
    with misfits_in(text):
        top = _mapping(load_yaml(text), "the experiment", KEYS)
        policies = "schedulers" if "schedulers" in top and "policies" not in top else "policies"
        for key in ("dags", policies, "games"):
            if key not in top:
                raise MisfitError(f'an experiment needs the key "{key}"')
        if {"policies", "schedulers"} <= set(top):
            raise MisfitError('"schedulers" is the old name of "policies": give only one of them')
        return Experiment(
            name=_word(top["name"], "name") if "name" in top else None,
            sources=tuple(source for entry in _list(top, "dags") for source in _sources(entry, folder)),
            schedulers=tuple(_scheduler(entry, folder) for entry in _list(top, policies)),
            games=_games(top["games"]),
            runs=_whole(top.get("runs", RUNS), "runs", 1),
            seeds=tuple(_whole(seed, "a seed", 0) for seed in _list(top, "seeds")) if "seeds" in top else (0,),
        )


def _sources(entry: object, folder: str) -> list[Source]:
    if isinstance(entry, str):
        return [_file(entry, folder)]
    options = _mapping(entry, "a dag", DAG_KEYS)
    if "file" in options:
        return [_file(_word(options["file"], "file"), folder)]
    if "family" not in options:
        keys = ", ".join(options) or "no keys"
        raise MisfitError(f'a dag must be a "file", or a "family" with "sizes", got {keys}', "dags")
    family = _word(options["family"], "family")
    seed = _whole(options.get("seed", 0), "seed", 0)
    sources = []
    for sizes in _list(options, "sizes"):
        source = Source.of_family(family, sizes if isinstance(sizes, list) else [sizes], seed)
        try:
            source.load()
        except InputError as error:
            raise MisfitError(str(error), family) from None
        sources.append(source)
    return sources


def _file(path: str, folder: str) -> Source:
    source = Source.of_file(path, folder)
    if not os.path.isfile(source.path or ""):
        raise MisfitError(f"no such file: {shorten(path)!r}", path)
    return source


def _scheduler(entry: object, folder: str) -> str:
    word = _word(entry, "a scheduler")
    name = OLD_NAMES.get(word, word)
    beside = os.path.join(folder, name)
    chosen = beside if name not in SCHEDULERS and os.path.isfile(beside) else name
    try:
        check_scheduler(chosen)
    except InputError as error:
        raise MisfitError(str(error), name) from None
    return chosen


def _games(value: object) -> tuple[Game, ...]:
    wanted = _mapping(value, "games", GAMES)
    games: list[Game] = []
    for name, settings in wanted.items():
        try:
            games += _game(name, settings)
        except InputError as error:
            raise MisfitError(str(error), name) from None
    return tuple(games)


def _game(name: str, settings: object) -> Sequence[Game]:
    if name == "volatile":
        several = settings if isinstance(settings, list) else [settings]
        return [volatile_game(**_mapping(each, name, (*CLIENTS, "rules", "times"))) for each in several]
    options = _mapping(settings, name, {"batched": ("rates",), "steady": ("workers",)}.get(name, ()))
    if name == "steady":
        return steady_games(_list(options, "workers") if "workers" in options else WORKERS)
    if name in {"pebble", "space"}:
        return [Game(name)]
    rates = _list(options, "rates") if "rates" in options else list(RATES)
    for rate in rates:
        if isinstance(rate, bool) or not isinstance(rate, int | float):
            raise MisfitError(f"a rate must be a number, got {kind(rate)}", "rates")
    return batched_games(rates)


def _mapping(value: object, what: str, keys: Iterable[str]) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise MisfitError(f"{what} must be a mapping, got {kind(value)}")
    allowed = list(keys)
    for key in value:
        if key not in allowed:
            takes = f"known keys: {', '.join(allowed)}" if allowed else "it has no settings"
            raise MisfitError(f"{what} has the unknown key {shorten(str(key))!r} ({takes})", str(key))
    return value


def _list(top: Mapping[str, Any], key: str) -> list[Any]:
    value = top.get(key)
    if not isinstance(value, list) or not value:
        actual = "an empty list" if value == [] else kind(value)
        raise MisfitError(f'"{key}" must be a non-empty list, got {actual}', key)
    return value


def _word(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise MisfitError(f"{what} must be a name, got {kind(value)}", None if value is None else str(value))
    return value


def _whole(value: object, what: str, least: int) -> int:
    if type(value) is not int or value < least:
        actual = value if isinstance(value, int | float) else kind(value)
        raise MisfitError(f"{what} must be an integer of at least {least}, got {actual}", what)
    return value


def _refuse_twice(what: str, labels: Sequence[str]) -> None:
    for label, times in Counter(labels).items():
        if times > 1:
            raise InputError(f"the {what} {shorten(label)!r} is listed twice")
