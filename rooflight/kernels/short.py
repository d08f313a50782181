"""Kernel names for reading: template arguments folded to three, namespaces of habit left out.

``‹ ›`` are typographic, so that a name is never taken for markup.
"""

from __future__ import annotations

import re

from rooflight.kernels.mangled import identifiers, is_mangled, outer_path
from rooflight.kernels.signature import LIMIT, parse, split_args

_WIDTH = 120
_ARG_WIDTH = 48
_HABITS = re.compile(r"\b(?:at::native::|at::cuda::|at_cuda_detail::|c10::|std::|cutlass::(?=[a-z_]*_t\b))")
_TENSILE = re.compile(
    r"^(Cijk_[A-Za-z]{2,5}_[A-Za-z]{2,5}(?:_(?!MT|HA|SAV|AS)[A-Z0-9]{1,6}(?=_)){1,3})_.{0,80}?(MT\d+x\d+x\d+)(?:_(MI[0-9x]+))?"
)
_WRAPPERS = ("kentry", "Kernel", "Kernel2", "device_kernel", "kernel_entry")


def short_name(name: str) -> str:
    """A form of at most 120 characters: ``path‹arg, arg, arg, …›``."""
    text = name[:LIMIT]
    if found := _TENSILE.match(text):
        return _cut(" ".join(part for part in found.groups() if part), _WIDTH)
    if is_mangled(text):
        return _cut(_mangled(text), _WIDTH)
    if text.startswith(("Memcpy ", "Memset ")):
        return _cut(text, _WIDTH)
    signature = parse(text)
    path = _HABITS.sub("", signature.path) or text.strip()
    return _cut(path + _folded(signature.args), _WIDTH)


def _mangled(text: str) -> str:
    path = outer_path(text)
    if not path:
        return text
    if path[-1] in _WRAPPERS:
        inner = [i for i in identifiers(text) if i not in path]
        return "::".join(path) + (f"‹{_cut(inner[0], _ARG_WIDTH)}, …›" if inner else "")
    return "::".join(path)


def _folded(args: str) -> str:
    parts = [_argument(a) for a in split_args(args)]
    if not parts:
        return ""
    shown = ", ".join(parts[:3])
    return f"‹{shown}, …›" if len(parts) > 3 else f"‹{shown}›"


def _argument(text: str) -> str:
    """One argument: a functor without the lambda path behind it, a template without its depths."""
    lambda_types = text.rpartition("{lambda(")[2].partition(")")[0] if "{lambda(" in text else ""
    head = _HABITS.sub("", text.partition("::{lambda")[0].partition("::operator")[0])
    outer, _, inner = head.partition("<")
    if not inner:
        return _cut(f"{head}({lambda_types})" if lambda_types else head, _ARG_WIDTH)
    first = split_args(inner.rstrip("> "))[:1]
    return _cut(
        f"{outer}‹{_HABITS.sub('', first[0]).replace('<', '‹').replace('>', '›') if first else ''}›",
        _ARG_WIDTH,
    )


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
