"""Text that is no JSON, but leaves no doubt what it means.

Old profilers print non-finite numbers bare (``inf``, ``-nan``) and leave Windows paths unescaped
(``torch\\cuda``).  Both can be mended without a guess; a missing quote cannot, and is refused.
"""

from __future__ import annotations

import re
from collections import Counter

#: A whole string, or a bare word outside of strings that means no finite number.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|-?\b(?:inf(?:inity)?|nan)\b', re.IGNORECASE | re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f]")
_BAD_ESCAPE = re.compile(r'\\(?:\\|(?!["\\/bfnrt]|u[0-9a-fA-F]{4}))', re.DOTALL)


def repaired(text: str) -> tuple[str, Counter[str]]:
    """The text as JSON as far as that is certain, and what was mended, counted by kind.

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
