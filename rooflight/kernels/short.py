"""Kernel names for reading: template arguments folded to three, namespaces of habit left out.

``‹ ›`` are typographic, so that a name is never taken for markup.
"""

from __future__ import annotations

import re

from rooflight.kernels.mangled import identifiers, is_mangled, outer_path
from rooflight.kernels.signature import LIMIT, parse, split_args

_WIDTH = 120
_ARG_WIDTH = 48
_HABITS = re.compile(
    r"\b(?:at::native::|at::cuda::|at_cuda_detail::|c10::|std::|binary_internal::|"
    r"rocprim::ROCPRIM_\d{1,8}_NS::(?:detail::)?|cutlass::(?=[a-z_]*_t\b))"
)
_TENSILE = re.compile(
    r"^(Cijk_[A-Za-z]{2,5}_[A-Za-z]{2,5}(?:_(?!MT|HA|SAV|AS)[A-Z0-9]{1,6}(?=_)){1,3})_.{0,80}?(MT\d+x\d+x\d+)(?:_(MI[0-9x]+))?"
)
_CUSTOMARY = re.compile(r"(?:std::array|at::detail::Array)<char ?\*|(?:Trivial)?OffsetCalculator<")
_SAYS = re.compile(r"Functor|functor|Ops<|_kernel_cuda|_kernel_impl|cuda_kernel|\bgemm\b")
_DEPTH = 2
_TINY = 6  # an argument that is shown at any depth
_COUNTED = re.compile(r"<\d{1,4}>(?=::)")
_WRAPPERS = ("kentry", "Kernel", "Kernel2", "device_kernel", "kernel_entry")


def short_name(name: str) -> str:
    """A form of at most 120 characters: ``path‹arg, arg, arg, …›``."""
    text = name[:LIMIT]
    if found := _TENSILE.match(text):
        return _cut(" ".join(part for part in found.groups() if part), _WIDTH)
    if is_mangled(text):
        return _cut(_mangled(text), _WIDTH)
    if text.startswith(("Memcpy ", "Memset ", "[")):
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
        inner = [i for i in inner if i[0].isupper()] or inner  # namespaces are not capitalised
        return "::".join(path) + (f"‹{_cut(inner[0], _ARG_WIDTH)}, …›" if inner else "")
    return "::".join(path)


def _folded(args: str) -> str:
    # Arrays of pointers and their offsets say nothing but how many there are.
    given = [a for a in split_args(args) if not _CUSTOMARY.match(a)]
    parts = [_argument(a, _DEPTH) for a in given]
    if not parts:
        return ""
    shown = ", ".join(parts[:3])
    return f"‹{shown}, …›" if len(parts) > 3 else f"‹{shown}›"


def _argument(text: str, depth: int) -> str:
    """One argument: a functor without the lambda path behind it, of a template the first argument
    and the one that says what is done."""
    text = _COUNTED.sub("", text)
    head, lambda_at, _ = text.partition("::{lambda")
    outer, opened, rest = head.partition("<")
    if not opened:
        name = _HABITS.sub("", head.partition("::operator")[0])
        return _cut(f"{name}({_lambda_types(text)})" if lambda_at else name, _ARG_WIDTH)
    name = _cut(_HABITS.sub("", outer), _ARG_WIDTH)
    inner = split_args(text[len(outer) + 1 :].rpartition(">")[0] if rest else "")
    telling = [a for a in inner[1:] if _SAYS.search(a)][:1]
    if not inner or (not depth and (len(inner) > 1 or len(inner[0]) > _TINY)):
        return name
    return f"{name}‹{', '.join(_argument(a, depth - 1) for a in inner[:1] + telling)}›"


def _lambda_types(text: str) -> str:
    return _HABITS.sub("", text.rpartition("{lambda(")[2].partition(")")[0])


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
