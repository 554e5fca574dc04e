"""YAML whose words stay words, for formats where the place tells what is meant: 010 and true are the strings they look like.

The reader is that of `eligo.formats.yaml_format`, with all that it refuses.

>>> load("{size: 010, kept: true, gone: ~}")
{'size': '010', 'kept': 'true', 'gone': None}
"""

from functools import cache
from typing import Any

from eligo.errors import FormatError
from eligo.formats import yaml_format

_STR, _NULL = "tag:yaml.org,2002:str", "tag:yaml.org,2002:null"


def load(text: str) -> object:
    """The value that a YAML text describes, its scalars as strings or None."""
    import yaml

    try:
        return yaml_format._document(_words(yaml_format._loader())(text))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise FormatError(f"not valid YAML: {error.problem}", line=line) from None
    except yaml.YAMLError as error:  # a character that YAML does not allow
        raise FormatError(f"not valid YAML: {getattr(error, 'reason', error)}") from None


@cache
def _words(loader: Any) -> Any:
    class Words(loader):  # type: ignore[misc]
        def resolve(self, kind: Any, value: Any, implicit: Any) -> str:
            return _NULL if super().resolve(kind, value, implicit) == _NULL else _STR

    return Words
