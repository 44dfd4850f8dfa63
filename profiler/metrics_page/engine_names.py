"""What engines are called in a capture: by the labels that tell them apart, and no others."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from stallscope.profiler.metrics_page.scrape import Identity

_RANKS = ("engine", "dp_rank")  # these alone name an engine where nothing else differs


def engine_names(identities: Collection[Identity]) -> Mapping[Identity, str]:
    """Name each identity; one that lacks labels of another's, and differs in none, joins it.

    Where it would join several, as counters of a front end over several ranks do, it is "all".
    """
    ordered = sorted(identities)
    whole = [one for one in ordered if not _wider(one, ordered)]
    names = dict(zip(whole, _named(whole), strict=True))
    for one in ordered:
        wider = [other for other in _wider(one, ordered) if other in names]
        if wider:
            names[one] = names[wider[0]] if len(wider) == 1 else "all"
    return names


def _wider(one: Identity, others: Sequence[Identity]) -> list[Identity]:
    mine = set(one.labels)
    return [o for o in others if o.engine == one.engine and mine < set(o.labels)]


def _named(whole: Sequence[Identity]) -> list[str]:
    labels = [{"": one.engine, **dict(one.labels)} for one in whole]
    names = dict.fromkeys(name for one in labels for name in one)
    differing = [n for n in names if len({one.get(n) for one in labels}) > 1]
    shown = differing or [n for n in _RANKS if n in names]
    return ["/".join(one[n] for n in shown if n in one) or "0" for one in labels]
