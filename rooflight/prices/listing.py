"""The list of instances: ours and a user's own put together, searched and sorted."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from decimal import Decimal

from rooflight.hardware.names import alike, find
from rooflight.prices.catalogue import instances, key
from rooflight.prices.model import BUILT_IN, Instance, price_per_gpu_hour


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to list; ``None`` is everything.  ``gpu_ids`` are ids of the hardware catalogue."""

    gpu_ids: Collection[str] | None = None
    provider: str | None = None
    region: str | None = None

    def takes(self, instance: Instance) -> bool:
        return (
            (self.gpu_ids is None or instance.gpu_id in self.gpu_ids)
            and (self.provider is None or instance.provider.lower() == self.provider.strip().lower())
            and (self.region is None or _holds_in(instance, self.region))
        )


def meant(gpu: str) -> list[str]:
    """Ids of the GPUs that a name may mean, several when it is unclear: to list all assumes nothing."""
    found = find(gpu)
    return [found.id] if found else [g.id for g in alike(gpu)]


def with_own(*lists: Iterable[Instance]) -> tuple[Instance, ...]:
    """Our list with a user's own prices in place of ours; of several lists the later one wins.

    A list that prices an instance prices it alone: no other list's price of that instance stays, of
    whatever region, since it is not what this user pays.
    """
    merged = list(instances())
    for own in map(tuple, lists):
        priced = {key(i.provider, i.name) for i in own}
        merged = [i for i in merged if key(i.provider, i.name) not in priced]
        merged += own
    return tuple(merged)


def selected(among: Iterable[Instance], wanted: Wanted) -> list[Instance]:
    """The entries asked for, cheapest GPU hour first, those without a price last."""
    return sorted((i for i in among if wanted.takes(i)), key=_order)


def find_instances(
    name: str,
    *,
    provider: str | None = None,
    region: str | None = None,
    among: Iterable[Instance] | None = None,
) -> tuple[Instance, ...]:
    """Every entry of the instance called ``name`` (in any case), ``among`` a list or ours; with ``region``
    its price there, else one of a user's own that is meant for every region."""
    asked, wanted = name.strip().lower(), Wanted(provider=provider, region=region)
    listed = instances() if among is None else among
    found = tuple(i for i in listed if asked in (n.lower() for n in i.names) and wanted.takes(i))
    there = tuple(i for i in found if i.region) if region else ()
    return there or found


def find_instance(
    name: str,
    *,
    provider: str | None = None,
    region: str | None = None,
    among: Iterable[Instance] | None = None,
) -> Instance | None:
    """The one entry that is asked for; ``None`` when there is none, or more than one: the price of one
    region or provider does not stand for another's."""
    found = find_instances(name, provider=provider, region=region, among=among)
    return found[0] if len(found) == 1 else None


def _holds_in(instance: Instance, region: str) -> bool:
    """Whether a price is that of ``region``: a user's own without a region is meant for all of them."""
    own = instance.origin != BUILT_IN
    return instance.region.lower() == region.strip().lower() or (own and not instance.region)


def _order(instance: Instance) -> tuple[bool, Decimal, str, str, str]:
    per_gpu = price_per_gpu_hour(instance)
    return (
        per_gpu is None,
        Decimal(0) if per_gpu is None else per_gpu,
        instance.provider,
        instance.name,
        instance.region,
    )
