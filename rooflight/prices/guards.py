"""Which prices of a file are believed.

Public lists have stored prices of reservations as those on demand, 2.3 times too low: such a row shows by a
spot price above it, or by its distance from other regions.  Nothing is mended; what is doubtful is left out.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction

from rooflight.prices.catalogue import key
from rooflight.prices.model import Instance
from rooflight.prices.offers import Offer, Rejection, Tally

#: On-demand prices of one instance differ less than this between regions.
MAX_SPREAD = 2
_SPOT = "a spot price"


@dataclass(frozen=True, slots=True)
class Judged:
    """The prices to keep, how many rows were passed over and why, and what was rejected."""

    kept: tuple[Instance, ...]
    skipped: Counter[str]
    rejected: tuple[Rejection, ...]


def judge(tally: Tally, day: str, origin: str) -> Judged:
    """The believable on-demand prices of ``tally``, one for each instance and region, as of ``day``."""
    out = Tally(skipped=Counter(tally.skipped), rejected=list(tally.rejected))
    spot: dict[tuple[str, str, str], Offer] = {}
    asked: dict[tuple[str, str, str], list[Offer]] = defaultdict(list)
    for offer in tally.offers:
        if offer.spot:
            out.skip(_SPOT)
            dearest = spot.setdefault(_place(offer), offer)
            spot[_place(offer)] = max(dearest, offer, key=lambda o: o.usd_per_hour)
        else:
            asked[_place(offer)].append(offer)
    settled = [o for offers in asked.values() if (o := _settle(offers, day, out)) is not None]
    cheaper = [o for o in settled if _under_spot(o, spot.get(_place(o)), out)]
    kept = sorted(
        (_instance(o, day, origin) for o in _in_line(cheaper, out)),
        key=lambda i: (i.provider, i.name, i.region),
    )
    return Judged(tuple(kept), +out.skipped, tuple(out.rejected))


def _place(offer: Offer) -> tuple[str, str, str]:
    return (*key(offer.instance.provider, offer.instance.name), offer.region.lower())


def _settle(offers: list[Offer], day: str, out: Tally) -> Offer | None:
    """The one price that holds on ``day``: the newest, when the file says since when each holds."""
    now = [o for o in offers if o.since[:10] <= day]
    out.skipped.update({"a price of the future": len(offers) - len(now)})
    newest = max((o.since for o in now), default="")
    held = [o for o in now if o.since == newest]
    out.skipped.update({"an older price": len(now) - len(held)})
    if len({o.usd_per_hour for o in held}) > 1:
        for offer in held:
            other = next(o for o in held if o.usd_per_hour != offer.usd_per_hour)
            out.reject(offer, f"there is another price for the same, {other}")
        return None
    out.skipped.update({"the same price again": max(0, len(held) - 1)})
    return held[0] if held else None


def _under_spot(offer: Offer, spot: Offer | None, out: Tally) -> bool:
    if spot is None or spot.usd_per_hour <= offer.usd_per_hour:
        return True
    out.reject(offer, f"the spot price is above it: {spot}")
    return False


def _in_line(offers: Iterable[Offer], out: Tally) -> list[Offer]:
    """Those of each instance that lie within ``MAX_SPREAD`` of each other."""
    by_instance: dict[tuple[str, str], list[Offer]] = defaultdict(list)
    for offer in offers:
        by_instance[key(offer.instance.provider, offer.instance.name)].append(offer)
    return [o for rows in by_instance.values() for o in _close(rows, out)]


def _close(offers: list[Offer], out: Tally) -> list[Offer]:
    """Without those farthest from the middle, until the rest is close.

    Of two that disagree neither is believed: which of them is wrong the file does not tell.
    """
    rows = sorted(offers, key=lambda o: o.usd_per_hour)
    while rows and rows[-1].usd_per_hour > MAX_SPREAD * rows[0].usd_per_hour:
        low, high = rows[0], rows[-1]
        # The middle is the geometric mean of the middle two, and distance a ratio, here squared.
        prices = [Fraction(o.usd_per_hour) for o in rows]
        square = prices[(len(rows) - 1) // 2] * prices[len(rows) // 2]
        below, above = square / prices[0] ** 2, prices[-1] ** 2 / square
        ratio = high.usd_per_hour / low.usd_per_hour
        for offer, other, far in ((low, high, below >= above), (high, low, above >= below)):
            if far:
                out.reject(offer, f"regions differ {ratio:.2f} times, more than {MAX_SPREAD}: {other}")
        rows = rows[below >= above : len(rows) - (above >= below)]
    return rows


def _instance(offer: Offer, day: str, origin: str) -> Instance:
    return replace(
        offer.instance,
        usd_per_hour=offer.usd_per_hour,
        region=offer.region,
        date=offer.date or day,
        source=offer.source,
        confidence="own",
        notes="",
        origin=origin,
    )
