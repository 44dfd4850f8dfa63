"""What follows: the chain of causes, what to change, what would not help, what to observe next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from stallscope.analyzers.result import Diagnosis, Gain, Link, Remedy
from stallscope.profiler.evidence import Measure
from stallscope.reports import format as fmt
from stallscope.reports.blocks import Item, Items, Section


def chain(diagnosis: Diagnosis) -> Section:
    """Cause by cause, each with its evidence."""
    known = {measure.name: measure for measure in diagnosis.measures}
    links = tuple(_link(link, known) for link in diagnosis.verdict.chain)
    return Section("How it comes about", (Items(links, is_numbered=True),))


def remedies(diagnosis: Diagnosis) -> Section:
    """Actions in order, with the gain that the cost model computes."""
    known = {measure.name: measure for measure in diagnosis.measures}
    items = tuple(Item(r.action, tuple(_remedy(r, known))) for r in diagnosis.remedies)
    return Section("What to change", (Items(items, is_numbered=True),))


def wont_help(diagnosis: Diagnosis) -> Section:
    """Popular fixes that do nothing here."""
    items = tuple(Item(f"{w.action}: {w.because}") for w in diagnosis.wont_help)
    return Section("Won't help here", (Items(items),))


def not_observable(diagnosis: Diagnosis) -> Section:
    """What is missing, why, and the cheapest way to it."""
    items = tuple(
        Item(f"{n.what}: {n.reason}", (f"To get it: {n.how}",) if n.how else ())
        for n in diagnosis.not_observable
    )
    return Section("Could not be observed", (Items(items),))


def _link(link: Link, known: Mapping[str, Measure]) -> Item:
    return Item(f"{link.cause} → {link.effect}", tuple(_evidence(link.evidence, known)))


def _evidence(names: Sequence[str], known: Mapping[str, Measure]) -> Iterator[str]:
    told = [f"{name} {fmt.measure(known[name])}" if name in known else name for name in names]
    if told:
        yield f"Evidence: {'; '.join(told)}"


def _remedy(remedy: Remedy, known: Mapping[str, Measure]) -> Iterator[str]:
    yield f"Gain: {_gain(remedy.gain)}" if remedy.gain else "Gain: no model computes it"
    if remedy.flag:
        flags = (f"{engine} {flag}" for engine, flag in remedy.flag.items())
        yield f"Flags: {' · '.join(flags)}"
    if remedy.cost:
        yield f"Costs: {remedy.cost}"
    yield from _evidence(remedy.evidence, known)
    if remedy.check:
        yield f"Check: {remedy.check}"


def _gain(gain: Gain) -> str:
    before, after = (fmt.quantity(value, gain.unit) for value in (gain.before, gain.after))
    error, change = fmt.rough_percent(gain.error), f"{gain.metric} {before} → {after}"
    if gain.error and not gain.is_told:  # as the sentence at the top says
        text = f"by how much cannot be told: {change} (estimated)"
        return f"{text} lies within the model error of ±{error}"
    return f"{change} (estimated, model error ±{error})"
