"""An experiment as data: dags x schedulers x games x seeds, and the file that says so.

    name: meshes and one workflow
    dags:
    - pipeline.json
    - {family: out-mesh, sizes: [10, 20, 40]}
    - {family: composition, sizes: [[w, 500], [m, 500]], seed: 3}
    schedulers: [balanced, plan, fifo, greedy, my.order]
    games:
      pebble: {}
      batched: {rates: [2, 8, 32, 128]}
      volatile: {count: 16, rules: prudent}
      steady: {workers: [4, 16]}
    runs: 50
    seeds: [0]

Files are found beside the experiment's own. A family has a dag for each of its `sizes`, a number, or a list where it takes
several. A scheduler is one of `eligo.simulation.SCHEDULERS` or a file with an order. `rates` are mean numbers of requests a
poll. The settings of `volatile` are the fields of `eligo.simulation.Clients`; `rules`, none or prudent (what eligo's server
does about slow clients); and `times`, recorded, drawn (around the recorded ones) or equal. A list of settings is played one
by one. `steady` are so many equal workers who stay, played where the seconds of every task are known.
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
from eligo.formats.reading import read_loaded
from eligo.formats.shared.document import MisfitError, kind, misfits_in
from eligo.formats.shared.files import load_any
from eligo.formats.shared.yaml_text import load as load_yaml
from eligo.pools import MOST_WORKERS
from eligo.simulation import SCHEDULERS, Clients
from eligo.workflow import Workflow

KEYS = ("name", "dags", "schedulers", "games", "runs", "seeds")
DAG_KEYS = ("file", "family", "sizes", "seed")
RULES = {"none": Rules(), "prudent": PRUDENT}
TIMES = ("recorded", "drawn", "equal")
CLIENTS = tuple(field.name for field in fields(Clients))
GAMES = ("pebble", "batched", "volatile", "steady")
RATES = (2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)
WORKERS = (4, 16, 64)
RUNS = 50  # what the comparison paper has
MOST_RUNS = 1_000_000
MOST_CELLS = 1_000_000

Size = int | float | str
Setting = tuple[tuple[str, Any], ...]


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where a dag comes from: a file, or a family with its sizes."""

    label: str
    path: str | None = None
    family: str = ""
    sizes: tuple[Size, ...] = ()
    seed: int = 0
    #: whether every arc of the file is turned round
    reverse: bool = False
    #: files or folders that say how long tasks took in earlier runs
    histories: tuple[str, ...] = ()

    @classmethod
    def of_file(cls, path: str, folder: str = "", reverse: bool = False) -> "Source":
        """A file, called as it was given."""
        label = f"{path} reversed" if reverse else path
        return cls(label=label, path=os.path.join(folder, path), reverse=reverse)

    @classmethod
    def of_family(cls, family: str, sizes: Sequence[Size], seed: int = 0) -> "Source":
        """A dag of a family, called as one would ask for it."""
        words = " ".join(map(str, (family, *sizes)))
        return cls(label=f"{words} seed {seed}" if seed else words, family=family, sizes=tuple(sizes), seed=seed)

    def load(self) -> Workflow:
        """The workflow, with what is known of earlier runs."""
        return with_history(self._loaded(), *self.histories)

    def _loaded(self) -> Workflow:
        if self.path is not None:
            return read(self.path, reverse=self.reverse)
        if self.family not in FAMILIES:
            raise InputError(f"there is no family named {shorten(self.family)!r}").cured_by("family")
        function = FAMILIES[self.family]
        named = {"seed": self.seed} if "seed" in inspect.signature(function).parameters else {}
        try:
            inspect.signature(function).bind(*self.sizes, **named)
        except TypeError as error:
            raise InputError(f"{self.label}: the family {self.family} takes other sizes: {error}") from None
        return Workflow(function(*self.sizes, **named), name=self.label)


class Game(NamedTuple):
    """A game with its settings."""

    name: str
    setting: Setting = ()

    @property
    def label(self) -> str:
        """The settings in a word or two, without spaces around the equals sign.

        >>> Game("batched", (("rate", 8.0),)).label
        'rate=8'
        """
        shown = (f"{key}={value:g}" if isinstance(value, float) else f"{key}={value}" for key, value in self.setting)
        return " ".join(shown)

    @property
    def rate(self) -> float:
        """Of the batched game, the mean number of requests a poll."""
        return float(dict(self.setting)["rate"])

    @property
    def workers(self) -> int:
        """Of the steady game, how many work."""
        return int(dict(self.setting)["workers"])


class Cell(NamedTuple):
    """One entry of an experiment: so many runs of a game on a dag under a scheduler."""

    source: Source
    scheduler: str
    game: Game
    seed: int
    runs: int


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """What is to be played; `cells` lists it all."""

    sources: tuple[Source, ...]
    schedulers: tuple[str, ...]
    games: tuple[Game, ...]
    runs: int = RUNS
    seeds: tuple[int, ...] = (0,)
    name: str | None = None

    def __post_init__(self) -> None:
        for what in ("sources", "schedulers", "games", "seeds"):
            if not getattr(self, what):
                raise InputError(f"an experiment needs {'dags' if what == 'sources' else what}, and there are none")
        _refuse_twice("dag", [source.label for source in self.sources])
        _refuse_twice("scheduler", self.schedulers)
        for name in self.schedulers:
            check_scheduler(name)
        if len(self.sources) * len(self.schedulers) * len(self.games) * len(self.seeds) > MOST_CELLS:
            raise InputError(f"that would be more than {MOST_CELLS:,} cells: choose fewer dags, settings or seeds")
        if not 1 <= self.runs <= MOST_RUNS:
            raise InputError(f"runs is a whole number from 1 to {MOST_RUNS:,}, and {self.runs} is not")
        if any(seed < 0 for seed in self.seeds):
            raise InputError(f"a seed is a whole number of at least 0, and {min(self.seeds)} is not")

    def cells(self) -> Iterator[Cell]:
        """Every entry, dag by dag."""
        for source, game, seed, name in product(self.sources, self.games, self.seeds, self.schedulers):
            yield Cell(source, name, game, seed, self.runs)


def check_scheduler(name: str) -> None:
    """Refuse a scheduler that is neither known nor a file."""
    if name not in SCHEDULERS and not os.path.isfile(name):
        raise InputError(
            f"there is no scheduler named {shorten(name)!r}, and no file with such an order; "
            f"there are {', '.join(SCHEDULERS)}"
        )


def batched_games(rates: Iterable[float]) -> tuple[Game, ...]:
    """The batched game at each of these rates, which are finite and above 0.

    >>> [game.label for game in batched_games([2, 0.5])]
    ['rate=2', 'rate=0.5']
    """
    found = tuple(Game("batched", (("rate", float(rate)),)) for rate in rates)
    for game in found:
        if not 0 < game.rate < math.inf:
            raise InputError(f"a rate is a number of requests above 0 and finite, and {game.rate:g} is not")
    return found


def steady_games(workers: Iterable[object]) -> tuple[Game, ...]:
    """The game with so many equal workers who stay, for each of these numbers.

    >>> [game.label for game in steady_games([4, 16])]
    ['workers=4', 'workers=16']
    """
    found = []
    for count in workers:
        if type(count) is not int or not 1 <= count <= MOST_WORKERS:
            raise InputError(f"workers are a whole number from 1 to {MOST_WORKERS:,}, and {shorten(str(count))} is not")
        found.append(Game("steady", (("workers", count),)))
    return tuple(found)


def volatile_game(**settings: Any) -> Game:
    """The game with clients that come and go; what is not set is as `eligo.simulation.Clients` has it.

    >>> volatile_game(count=4, rules="prudent").label
    'count=4 rules=prudent'
    """
    for key in settings:
        if key not in (*CLIENTS, "rules", "times"):
            raise InputError(
                f"clients have no setting {shorten(key)!r}; there are {', '.join(CLIENTS)}, rules and times"
            )
    game = Game("volatile", tuple(settings.items()))
    crowd_of(game)
    return game


def crowd_of(game: Game) -> tuple[Clients, Rules, str]:
    """The clients of a volatile game, the server's rules, and what the tasks' times are."""
    settings = dict(game.setting)
    rules, times = settings.pop("rules", "none"), settings.pop("times", "recorded")
    if rules not in RULES:
        raise InputError(f"rules are {' or '.join(RULES)}, and {shorten(str(rules))!r} is not")
    if times not in TIMES:
        raise InputError(f"times are {', '.join(TIMES[:-1])} or {TIMES[-1]}, and {shorten(str(times))!r} is not")
    if not isinstance(settings.get("count", 1), int):
        raise InputError(f"the count of clients is a whole number, and {settings['count']!r} is not")
    try:
        return Clients(**settings), RULES[rules], times
    except TypeError as error:
        raise InputError(f"these are no settings for clients: {error}") from None


# Reading


def read_compared(path: str, reverse: bool = False) -> Experiment | Workflow:
    """What a file describes: an experiment, where it is YAML that has dags, schedulers or games, else a workflow."""
    loaded = load_any(path)
    lines = loaded.text.splitlines() if path.endswith((".yaml", ".yml")) else ()
    if not any(line.startswith(("dags:", "schedulers:", "games:")) for line in lines):
        return read_loaded(loaded, path, reverse=reverse)
    try:
        return parse_experiment(loaded.text, os.path.dirname(path))
    except FormatError as error:
        raise FormatError(error.message, error.path or path, error.line) from None
    except InputError as error:
        raise error.located(path) from None


def parse_experiment(text: str, folder: str = "") -> Experiment:
    """The experiment that a text describes; files are looked for in the folder.

    >>> found = parse_experiment("dags: [{family: w, sizes: [[3, 2]]}]\\nschedulers: [fifo]\\ngames: {pebble: {}}")
    >>> [source.label for source in found.sources], found.games, found.runs
    (['w 3 2'], (Game(name='pebble', setting=()),), 50)
    """
    with misfits_in(text):
        top = _mapping(load_yaml(text), "the experiment", KEYS)
        for key in ("dags", "schedulers", "games"):
            if key not in top:
                raise MisfitError(f'there is no "{key}", which an experiment needs')
        return Experiment(
            name=_optional_name(top),
            sources=tuple(source for entry in _list(top, "dags") for source in _sources(entry, folder)),
            schedulers=tuple(_scheduler(entry, folder) for entry in _list(top, "schedulers")),
            games=_games(top["games"]),
            runs=_whole(top.get("runs", RUNS), "runs", 1),
            seeds=tuple(_whole(seed, "a seed", 0) for seed in _list(top, "seeds")) if "seeds" in top else (0,),
        )


def _sources(entry: object, folder: str) -> list[Source]:
    if isinstance(entry, str):
        return [_file(entry, folder)]
    known = _mapping(entry, "a dag", DAG_KEYS)
    if "file" in known:
        return [_file(_word(known["file"], "file"), folder)]
    if "family" not in known:
        raise MisfitError('a dag is a "file" or a "family" with "sizes"', "dags")
    family = _word(known["family"], "family")
    seed = _whole(known.get("seed", 0), "seed", 0)
    found = []
    for sizes in _list(known, "sizes"):
        source = Source.of_family(family, sizes if isinstance(sizes, list) else [sizes], seed)
        try:
            source.load()
        except InputError as error:
            raise MisfitError(str(error), family) from None
        found.append(source)
    return found


def _file(path: str, folder: str) -> Source:
    source = Source.of_file(path, folder)
    if not os.path.isfile(source.path or ""):
        raise MisfitError(f"there is no file {shorten(path)!r}", path)
    return source


def _scheduler(entry: object, folder: str) -> str:
    name = _word(entry, "a scheduler")
    beside = os.path.join(folder, name)
    chosen = beside if name not in SCHEDULERS and os.path.isfile(beside) else name
    try:
        check_scheduler(chosen)
    except InputError as error:
        raise MisfitError(str(error), name) from None
    return chosen


def _games(value: object) -> tuple[Game, ...]:
    wanted = _mapping(value, "games", GAMES)
    found: list[Game] = []
    for name, settings in wanted.items():
        try:
            found += _game(name, settings)
        except InputError as error:
            raise MisfitError(str(error), name) from None
    return tuple(found)


def _game(name: str, settings: object) -> Sequence[Game]:
    if name == "volatile":
        several = settings if isinstance(settings, list) else [settings]
        return [volatile_game(**_mapping(each, name, (*CLIENTS, "rules", "times"))) for each in several]
    known = _mapping(settings, name, {"batched": ("rates",), "steady": ("workers",)}.get(name, ()))
    if name == "steady":
        return steady_games(_list(known, "workers") if "workers" in known else WORKERS)
    if name == "pebble":
        return [Game("pebble")]
    rates = _list(known, "rates") if "rates" in known else list(RATES)
    for rate in rates:
        if isinstance(rate, bool) or not isinstance(rate, int | float):
            raise MisfitError(f"a rate is {kind(rate)}, and should be a number", "rates")
    return batched_games(rates)


def _mapping(value: object, what: str, keys: Iterable[str]) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise MisfitError(f"{what} should be a mapping, and is {kind(value)}")
    allowed = list(keys)
    for key in value:
        if key not in allowed:
            takes = f"has {', '.join(allowed)}" if allowed else "has no settings"
            raise MisfitError(f"{what} has no key {shorten(str(key))!r}; it {takes}", str(key))
    return value


def _list(top: Mapping[str, Any], key: str) -> list[Any]:
    value = top.get(key)
    if not isinstance(value, list) or not value:
        shown = "empty" if value == [] else kind(value)
        raise MisfitError(f'"{key}" should be a list, and is {shown}', key)
    return value


def _word(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise MisfitError(f"{what} should be a name, and is {kind(value)}", None if value is None else str(value))
    return value


def _whole(value: object, what: str, least: int) -> int:
    if type(value) is not int or value < least:
        shown = value if isinstance(value, int | float) else kind(value)
        raise MisfitError(f"{what} should be a whole number of at least {least}, and is {shown}", what)
    return value


def _optional_name(top: Mapping[str, Any]) -> str | None:
    return _word(top["name"], "name") if "name" in top else None


def _refuse_twice(what: str, labels: Sequence[str]) -> None:
    for label, times in Counter(labels).items():
        if times > 1:
            raise InputError(f"the {what} {shorten(label)!r} is listed twice")
