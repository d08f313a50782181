"""Text that is no JSON, but leaves no doubt what it means.

Old profilers print non-finite numbers bare (``inf``, ``-nan``), leave Windows paths unescaped
(``torch\\cuda``) and quotes in names as they are (``Library("my_ns")``).  These can be mended without a
guess; a missing quote cannot, and is refused.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

#: Bytes of what is mended in one go: it takes up to a hundred times as much memory.
MAX_REPAIRED = 8 << 20
#: A kind of repair that is told apart from the others.
NAMES = "names with unescaped quotes"

#: A string, closed or not, or a bare word outside of strings that means no finite number.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|-?\b(?:inf(?:inity)?|nan)\b', re.IGNORECASE | re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f]")
_BAD_ESCAPE = re.compile(r'\\(?:\\|(?!["\\/bfnrt]|u[0-9a-fA-F]{4}))', re.DOTALL)
_BARE_QUOTE = re.compile(r'\\.|"', re.DOTALL)

# Everything repeats possessively, and no text runs on into the next one of its kind: time is linear.
_KEY = r'"(?:[^"\\]|\\.)*+"\s*+:'
_NAME_HEAD, _LOG_HEAD = r'"name"\s*+:\s*+"', r'"(?:VERBOSE|INFO|WARNING|STAGE|ERROR)"\s*+:\s*+\[\s*+"'
#: What follows the value of a key in any object: its next key, or its end.
_AFTER_VALUE = rf"\s*+(?:,\s*+{_KEY}|\}}\s*+(?:[,\]}}]|\Z))"
_AFTER_LIST = rf"\s*+\]{_AFTER_VALUE}"
#: A key within a text: its closing quote may be missing, and nothing is certain.
_INNER_KEY = re.compile(rf",\s*+\{{?\s*+{_KEY}", re.DOTALL)


def _quoted(head: str, after: str) -> re.Pattern[str]:
    """From ``head`` to the first quote that ``after`` follows, without a second ``head``."""
    text = rf'(?:[^"\\]*+(?:\\.|(?!{head})"))*?[^"\\]*+'
    return re.compile(rf'({head})({text})(?="{after})', re.DOTALL)


_NAME = _quoted(_NAME_HEAD, _AFTER_VALUE)
#: Messages of the profiler: where one of them ends may be in doubt, but not where their list does.
_LOG = _quoted(_LOG_HEAD, _AFTER_LIST)


def repairs(text: str) -> Iterator[tuple[str, Counter[str]]]:
    """Readings of the text as JSON, the least mended first, and what was mended, counted by kind."""
    yield repaired(text)
    kinds: Counter[str] = Counter()
    text = _requoted(_LOG, _requoted(_NAME, text, kinds, NAMES), kinds, "log lists with unescaped quotes")
    if kinds:
        whole, others = repaired(text)
        yield whole, kinds + others


def repaired(text: str) -> tuple[str, Counter[str]]:
    """The text with what is wrong in single tokens mended, and the counts.

    ``non-finite numbers`` become null, a backslash of an ``invalid escape`` stands for itself; ``raw
    control characters`` are counted and left to a parser that takes them.
    """
    kinds: Counter[str] = Counter()

    def mend(token: re.Match[str]) -> str:
        found = token[0]
        if not found.startswith('"'):
            kinds["non-finite numbers"] += 1
            return "null"
        kinds["raw control characters"] += len(_CONTROL.findall(found))
        if "\\" not in found:
            return found
        return _BAD_ESCAPE.sub(lambda m: _escape(m, kinds), found)

    return _TOKEN.sub(mend, text), +kinds


def _escape(found: re.Match[str], kinds: Counter[str]) -> str:
    if found[0] == "\\\\":
        return found[0]
    kinds["invalid escapes"] += 1
    return "\\\\"


def _requoted(pattern: re.Pattern[str], text: str, kinds: Counter[str], kind: str) -> str:
    """The text with the bare quotes of each match escaped, unless a key may be among them."""

    def mend(found: re.Match[str]) -> str:
        head, inner = found.groups()
        if _INNER_KEY.search(inner):
            return found[0]
        whole = _BARE_QUOTE.sub(lambda m: '\\"' if m[0] == '"' else m[0], inner)
        kinds[kind] += whole != inner
        return head + whole

    return pattern.sub(mend, text)
