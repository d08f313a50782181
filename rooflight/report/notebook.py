"""An analysis as a notebook's cell shows it: the verdict, where the time goes, what to do first."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator

from rooflight.figures import bars
from rooflight.protocol import Document, Finding, Rank
from rooflight.report import svg
from rooflight.report.markup import NB, Html, join, tag
from rooflight.report.summary import (
    Summary,
    counted,
    first_sentence,
    first_step,
    ms,
    share_pct,
    summarise,
    verdict,
)
from rooflight.report.text import fit

TOP_FINDINGS = 5
_NAME, _TEXT = 200, 500
_TITLE = "Where the time goes"


def shown(document: Document) -> Html:
    """The first rank as a fragment of HTML that needs neither script nor style of its own."""
    if not document.ranks:
        return tag("p", f"{fit(document.source, _NAME)}: nothing was analysed.")
    return tag("div", *_parts(document, document.ranks[0]))


def _parts(document: Document, rank: Rank) -> Iterator[Html]:
    s = summarise(rank)
    of = f"rank {rank.rank} of {counted(len(document.ranks), 'rank')}"
    facts = f"{fit(document.source, _NAME)}: {fit(s.device, _NAME)}, {counted(s.times.n, s.step)}, {of}"
    yield tag("p", facts)
    yield tag("p", tag("b", fit(verdict(s), _TEXT)), " ", fit(first_step(s), _TEXT))
    if s.parts is not None:
        yield _drawn(document, rank)
    if rank.findings:
        yield tag("p", f"What to do first; savings {s.unit} are upper bounds, overlap and do not add:")
        yield tag("ol", *(_finding(f, s) for f in rank.findings[:TOP_FINDINGS]))
    left = len(rank.findings) - TOP_FINDINGS
    if left > 0:
        yield tag("p", f"Not shown: {counted(left, 'more finding')}.")


def _drawn(document: Document, rank: Rank) -> Html:
    """An image: as a drawing of the page its styles would be those of the whole notebook."""
    source = svg.lying(bars.waterfall(document, rank.rank), _TITLE)
    packed = b64encode(source.encode("utf-8", "backslashreplace")).decode("ascii")
    return tag("img", src=f"data:image/svg+xml;base64,{packed}", alt=_TITLE, width="720")


def _finding(f: Finding, s: Summary) -> Html:
    share = share_pct(f, s)
    saving = ms(f.saving_us).replace(" ", NB) + ("" if share is None else f", {share:.1f}{NB}%")
    fix = first_sentence(fit(f.fix, _TEXT))
    return tag("li", join([tag("b", fit(f.title, _NAME)), tag("span", f" ({saving}) {fix}")]))
