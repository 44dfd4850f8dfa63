"""A plan as sections: what to expect, what fits, what binds each phase, and why."""

from __future__ import annotations

from collections.abc import Iterator

from stallscope.analyzers.plan.result import (
    MEMORY_FRACTION,
    MemoryMap,
    PhasePlan,
    Plan,
    Prediction,
)
from stallscope.profiler.spec import DeviceSpec, Subject
from stallscope.reports import format as fmt
from stallscope.reports.blocks import Bar, Cell, Column, Item, Items, Section, Table, Text, present
from stallscope.reports.kv_sections import growth_of
from stallscope.reports.plan_tables import (
    choices_of,
    launches_of,
    links_of,
    speculation_of,
    sweep_of,
)
from stallscope.reports.time_sections import operators_of

_NO_CLASS = ("none", "client")  # under this load nothing of the device or the engine binds
_FACTS = (Column("", "quiet"), Column(""))
_PREDICTIONS = (Column(""), Column("At best", "number"), Column("May be", "number"))
_EXPECTED = (
    *(Column(""), Column("At best", "number")),
    *(Column("Expected", "number"), Column("Within", "number")),
)
_MEMORY = (Column(""), Column("Size", "number"), Column("Bytes", "number"))
_BARS = (Column(""), Column(""), Column("", "number"), Column("", "number"), Column("", "quiet"))
_PHASES = (
    Column("Phase"),
    Column("One step"),
    Column("FLOPs", "number"),
    Column("Bytes", "number"),
    Column("FLOP/B", "number"),
)
_PRICED = (Column("Limited by"), Column("Floor", "number"))


def plan_sections(plan: Plan) -> tuple[Section, ...]:
    """Return what a plan has to tell, in the order in which a reader wants it."""
    return present(
        (
            _answer(plan),
            choices_of(plan.choices),
            speculation_of(plan.speculation),
            links_of(plan.links),
            launches_of(plan.launches),
            _notes(plan),
            _memory(plan.memory, plan.subject),
            _phases(plan),
            _budget(plan),
            operators_of(
                plan.operators, _ridge(plan), has_budget=any(p.budget for p in plan.phases)
            ),
            sweep_of(plan.sweep),
            growth_of(plan.kv_table),
            _missing(plan),
        )
    )


def plan_sentence(plan: Plan) -> str:
    """Return the plan in one sentence."""
    subject = plan.subject
    device = subject.device.name if subject.device else None
    fits = plan.memory.max_concurrency
    if device is None or fits is None:
        return f"{_what(subject)}: {fmt.bytes_size(plan.memory.weights_bytes)} of weights."
    if fits == 0:
        return f"{_what(subject)} does not fit on {_devices(subject, device)}."
    room = f"{fits:,} request{'s fit' if fits != 1 else ' fits'} at full length"
    return f"{_what(subject)} on {_devices(subject, device)}: {_limited(plan)}{room}."


def _limited(plan: Plan) -> str:
    """Name the limit under the load first, where it is none of those that the floors have."""
    bounds = [(p.bound, p.phase) for p in plan.phases if p.bound]
    if not bounds:
        return ""
    limit, known = plan.limit, {bound for bound, _ in bounds} - {"undetermined"}
    floors = " and ".join(f"{bound} in {phase}" for bound, phase in bounds) if known else ""
    if limit is None:  # more at once than are judged: launches and the host are in no floor
        return f"at best the limit is {floors}; " if known else ""
    if known and limit.bottleneck in {*known, *_NO_CLASS}:
        return f"the limit is {floors}; "
    found = f"the {limit.bottleneck}" if limit.bottleneck == "host" else limit.bottleneck
    if limit.bottleneck == "undetermined" and limit.between:
        found = f"undetermined between {' and '.join(limit.between)}"
    at_best = f" (at best {floors})" if known else ""
    return f"the limit is {found} under this load{at_best}; "


def _what(subject: Subject) -> str:
    name = subject.model.name if subject.model else "the model"
    return f"{name} with {subject.dtype} weights and {subject.kv_dtype} KV"


def _devices(subject: Subject, name: str) -> str:
    return name if subject.num_devices == 1 else f"{subject.num_devices} × {name}"


def _answer(plan: Plan) -> Section:
    facts = [
        ("Load", plan.subject.workload or ""),
        ("Parameters", f"{plan.parameters:,}, {fmt.percent(plan.ffn_share)} of them in the FFN"),
    ]
    named = (
        ("time to first token (TTFT)", plan.ttft_s),
        ("time per output token (TPOT)", plan.tpot_s),
        ("output tokens, all requests", plan.throughput_tokens_per_s),
    )
    known = [(name, p) for name, p in named if p is not None]
    blocks = (Text(plan_sentence(plan), "strong"), Table(_FACTS, tuple(facts)))
    judged = () if plan.limit is None else (Text(f"Under this load: {plan.limit.sentence}"),)
    return Section("", (*blocks, _predictions(known), *judged))


def _predictions(known: list[tuple[str, Prediction]]) -> Table:
    if all(prediction.expected is not None for _, prediction in known):
        return Table(_EXPECTED, tuple(_expected(name, p) for name, p in known))
    return Table(_PREDICTIONS, tuple(_prediction(name, p) for name, p in known))


def _prediction(name: str, prediction: Prediction) -> tuple[Cell, ...]:
    value, worst = (fmt.quantity(v, prediction.unit) for v in (prediction.value, prediction.worst))
    return (name, value, worst)


def _expected(name: str, prediction: Prediction) -> tuple[Cell, ...]:
    value, expected = (
        fmt.quantity(v or 0.0, prediction.unit) for v in (prediction.value, prediction.expected)
    )
    return (name, value, expected, f"± {fmt.rough_percent(prediction.expected_error or 0.0)}")


def _notes(plan: Plan) -> Section:
    return Section("Read with care", (Items(tuple(Item(note) for note in plan.notes)),))


def _memory(memory: MemoryMap, subject: Subject) -> Section:
    draft = [("weights of what drafts", memory.draft_weights_bytes)]
    rows = [
        ("weights", memory.weights_bytes),
        *(draft if memory.draft_weights_bytes else ()),
        (f"KV cache of {subject.concurrency} at full length", memory.kv_bytes),
        ("activations (estimated)", memory.activation_bytes),
    ]
    if memory.free_bytes is not None:
        rows.append(("free" if memory.free_bytes >= 0 else "too much by", abs(memory.free_bytes)))
    table = Table(_MEMORY, tuple((n, fmt.bytes_size(b), f"{b:,}") for n, b in rows))
    room = " ".join(_room(memory, subject.device, subject.num_devices))
    return Section("Memory of each device", (table, Text(room)))


def _room(memory: MemoryMap, device: DeviceSpec | None, num_devices: int) -> Iterator[str]:
    on_each = " on each device" if num_devices > 1 else ""
    yield f"KV cache per token: {memory.kv_bytes_per_token:,} bytes{on_each}."
    if device is not None and device.memory_bytes and memory.usable_bytes is not None:
        usable, total = fmt.bytes_size(memory.usable_bytes), fmt.bytes_size(device.memory_bytes)
        yield f"Counted on: {usable}, {fmt.rough_percent(MEMORY_FRACTION)} of {total}."
    if memory.max_concurrency is not None:
        yield f"Requests that fit at full length: {memory.max_concurrency:,}."


def _phases(plan: Plan) -> Section:
    is_priced = any(phase.time_s is not None for phase in plan.phases)
    columns = (*_PHASES, *_PRICED) if is_priced else _PHASES
    rows = tuple(_phase(phase)[: len(columns)] for phase in plan.phases)
    return Section("Phases", (Table(columns, rows),))


def _phase(phase: PhasePlan) -> tuple[Cell, ...]:
    return (
        phase.phase,
        phase.what,
        fmt.si(phase.flops, "FLOP"),
        fmt.si(phase.bytes, "B"),
        fmt.intensity(phase.intensity),
        phase.bound or "",
        "" if phase.time_s is None else fmt.seconds(phase.time_s),
    )


def _budget(plan: Plan) -> Section:
    tables = tuple(_bars(phase) for phase in plan.phases if phase.budget)
    return Section("Where a step's time goes at best", tables)


def _bars(phase: PhasePlan) -> Table:
    rows = tuple(
        (p.part, Bar(p.share), fmt.percent(p.share), fmt.seconds(p.time_s), p.provenance)
        for p in phase.budget
        if p.time_s != 0
    )
    return Table(_BARS, rows, caption=phase.phase)


def _ridge(plan: Plan) -> str:
    if plan.ridge is None:
        return ""
    return (
        f"Ridge point: {fmt.intensity(plan.ridge)} FLOP/B. "
        "Below it memory limits an operator, above it compute."
    )


def _missing(plan: Plan) -> Section:
    items = tuple(
        Item(f"{n.what}: {n.reason}", (f"To get it: {n.how}",)) for n in plan.not_observable
    )
    return Section("Could not be worked out", (Items(items),))
