"""A decoded batch into open windows: what windows need of it, and no more."""

from monitor.events import DecodedBatch
from monitor.ports import RawBatch
from monitor.windows import LabelTimes, LeftOut, RejectedAt, StreamRows, Windowing


def placed(windowing: Windowing, batch: RawBatch, decoded: DecodedBatch) -> LeftOut:
    """Put the events, labels and rejections of a batch where they belong."""
    return windowing.add(
        batch.partition,
        batch.next_offset,
        [StreamRows(scored.streams, scored.rows, batch.offsets[scored.index]) for scored in decoded.together],
        [RejectedAt(int(batch.offsets[bad.index]), bad.stream or None) for bad in decoded.rejected],
        {
            stream: LabelTimes(batch.offsets[known.index], known.timestamps, known.ids, known.targets)
            for stream, known in decoded.late_labels.items()
        },
        skipped=batch.skipped,
    )
