"""What `shiftwatch check` says of a stream that can be run and yet may not do what was meant. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

from monitor.limits import NAME_BYTES
from monitor.ports.options import duration_text
from monitor.reference import FiledReference
from monitor.settings import StreamSettings
from monitor.tolerances import REFERENCE_WINDOWS
from monitor.windows import CountPlan


def advice(name: str, stream: StreamSettings, reference: FiledReference, sink: Mapping[str, Any]) -> tuple[str, ...]:
    """Every sentence for one stream; none where there is nothing to say."""
    return (
        *_on_size(stream, reference.events),
        *_on_corrected(stream, sink),
        *_on_scores_alone(stream, reference),
        *_on_segments(stream, reference),
        *_on_name(name),
        *(warning.text for warning in reference.warnings),
    )


def _on_size(stream: StreamSettings, events: int) -> Iterator[str]:
    plan, most = stream.window.plan, events // REFERENCE_WINDOWS
    why = "a larger one shares the reference's own error, and raises false alarms"
    if not isinstance(plan, CountPlan):
        rate = f"{most / (plan.size / 1e6):.3g} a second"
        yield f"windows of {duration_text(plan.size)} may hold up to {most:,} events ({rate}): {why}"
    elif plan.count > most:
        yield (
            f"windows of {plan.count:,} want a reference of {REFERENCE_WINDOWS * plan.count:,} events; this one is "
            f"good for {most:,}: {why}"
        )


def _on_corrected(stream: StreamSettings, sink: Mapping[str, Any]) -> Iterator[str]:
    if stream.corrected != "no" and not sink.get("events"):
        yield "corrected events go nowhere: set `events` in [sink]"


def _on_scores_alone(stream: StreamSettings, reference: FiledReference) -> Iterator[str]:
    if reference.schema.classes and not reference.schema.features and stream.may is None and stream.labels is None:
        yield (
            "without features only large windows that moved far tell a change of the class mix from a shift of the "
            "inputs, and are corrected: give the hold-out and the events some, await labels, or declare "
            '`may = "change-mix"` if nothing else of the stream can change'
        )


def _on_segments(stream: StreamSettings, reference: FiledReference) -> Iterator[str]:
    for field in stream.segments:
        if field not in reference.segment_fields:
            yield (
                f"the reference does not know what is usual in a segment by {field}, and each is held against all "
                "events: give the hold-out events their `segment`"
            )


def _on_name(name: str) -> Iterator[str]:
    if "/" in name:
        yield "its name has a slash: in addresses of the API and the page it is written %2F"
    if (size := len(name.encode())) > NAME_BYTES:
        yield f"its name has {size:,} bytes, and stands in every message and metric: want {NAME_BYTES} at most"
