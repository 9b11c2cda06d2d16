"""The JSON API: what is known of each stream, for programs. Every answer is made from one snapshot; nothing can be
changed through it.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from monitor.assessment import RegressionResult, WindowResult, rfc3339
from monitor.kinds import AnyReading
from monitor.labels import OutcomeResult, RegressionOutcome
from monitor.limits import LONGEST_WAIT, WAITING_LOOKS
from monitor.observers import History, Snapshot, StreamFacts, Track
from monitor.recalibration import Recalibration
from monitor.version import __version__
from monitor.web.paths import stream_of


@dataclass(frozen=True, slots=True)
class Api:
    """The handlers; `stopping` ends what waits, of which there are at most so many."""

    history: History
    stopping: Callable[[], bool]
    most_waiting: int
    waiting: list[str] = field(default_factory=list)
    """The streams that somebody waits for just now."""

    def routes(self) -> list[Route]:
        """Where each is found."""
        handlers = {
            "/api/streams": self.streams,
            "/api/streams/{stream}": self.stream,
            "/api/streams/{stream}/windows": self.windows,
            "/api/streams/{stream}/result": self.result,
            "/api/streams/{stream}/recalibration": self.recalibration,
            "/api/streams/{stream}/outcomes": self.outcomes,
            "/api/openapi.json": self.openapi,
        }
        return [Route(path, handler, methods=["GET"]) for path, handler in handlers.items()]

    async def streams(self, request: Request) -> Response:
        """All streams with their last verdict."""
        snapshot = self.history.snapshot
        return answer(request, [self._summary(snapshot, name) for name in snapshot.facts])

    async def stream(self, request: Request) -> Response:
        """One stream: its reference, its segments, its last window."""
        snapshot = self.history.snapshot
        facts = _facts(request, snapshot)
        tracks = snapshot.tracks.get(facts.stream, {})
        body = {
            **self._summary(snapshot, facts.stream),
            "segments": sorted(name for name in tracks if name),
            "reference": _reference(facts),
        }
        return answer(request, body)

    async def windows(self, request: Request) -> Response:
        """The last windows, the newest first, each in short."""
        snapshot = self.history.snapshot
        facts, most = _facts(request, snapshot), _whole_number(request, "limit", 100)
        track = _track(snapshot, facts, request.query_params.get("segment", ""))
        readings = track.readings[-most:] if track else ()
        return answer(request, [_short(reading) for reading in reversed(readings)])

    async def result(self, request: Request) -> Response:
        """The whole result of the last window, as it went to the sink."""
        snapshot = self.history.snapshot
        facts = _facts(request, snapshot)
        track = _known(_track(snapshot, facts, request.query_params.get("segment", "")))
        return answer(request, track.result)

    async def outcomes(self, request: Request) -> Response:
        """How the estimates of the last windows whose labels have come had fared, the newest first."""
        snapshot = self.history.snapshot
        facts, most = _facts(request, snapshot), _whole_number(request, "limit", 100)
        track = _track(snapshot, facts, request.query_params.get("segment", ""))
        latest = track.outcomes[-most:] if track and most else ()
        return answer(request, list(reversed(latest)))

    async def recalibration(self, request: Request) -> Response:
        """The last recalibration. With `wait` and the ETag of the one that is known, answers when there is another."""
        wait = min(_whole_number(request, "wait", 0), LONGEST_WAIT)
        segment = request.query_params.get("segment", "")
        facts = _facts(request, self.history.snapshot)
        if wait and len(self.waiting) >= self.most_waiting:
            raise HTTPException(503, f"{self.most_waiting} others wait already: raise `max_connections` in [server]")
        self.waiting.append(facts.stream)
        try:
            for _ in range(int(wait / WAITING_LOOKS)):
                track = _track(self.history.snapshot, facts, segment)
                if (track and not _matches(request, etag(track.recalibration))) or self.stopping():
                    break
                await asyncio.sleep(WAITING_LOOKS)
                if await request.is_disconnected():
                    break
        finally:
            self.waiting.remove(facts.stream)
        return answer(request, _known(_track(self.history.snapshot, facts, segment)).recalibration)

    async def openapi(self, request: Request) -> Response:
        """What can be asked."""
        return answer(request, description())

    def _summary(self, snapshot: Snapshot, name: str) -> dict[str, Any]:
        track = snapshot.tracks.get(name, {}).get("")
        return {
            "stream": name,
            "latest": _short(track.latest) if track else None,
            "stale": track.stale(self.history.now()) if track else None,
            "spread": name in snapshot.flow.spread,
            "alarm": _alarm(track),
            "open_alarms": _open_alarms(snapshot.tracks.get(name, {})),
            "changes": _changes(track),
        }


def etag(body: bytes) -> str:
    """Names a body by its content."""
    return f'"{blake2b(body, digest_size=12).hexdigest()}"'


def answer(request: Request, value: Any) -> Response:
    """JSON with an ETag; not sent again to who has it already. Bytes are JSON already."""
    body = value if isinstance(value, bytes) else msgspec.json.encode(value)
    headers = {"ETag": etag(body), "Cache-Control": "no-cache"}
    if _matches(request, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    return Response(body, media_type="application/json", headers=headers)


def _matches(request: Request, tag: str) -> bool:
    known = request.headers.get("if-none-match", "")
    return any(known_tag.strip().removeprefix("W/") == tag for known_tag in known.split(","))


def _facts(request: Request, snapshot: Snapshot) -> StreamFacts:
    name = stream_of(request)
    if name not in snapshot.facts:
        raise HTTPException(404, f"there is no stream {name!r}")
    return snapshot.facts[name]


def _track(snapshot: Snapshot, facts: StreamFacts, segment: str) -> Track | None:
    tracks = snapshot.tracks.get(facts.stream, {})
    if segment and segment not in tracks:
        raise HTTPException(404, f"stream {facts.stream!r} has no segment {segment!r}")
    return tracks.get(segment)


def _known(track: Track | None) -> Track:
    if track is None:
        raise HTTPException(404, "no window has been assessed yet")
    return track


def _whole_number(request: Request, name: str, default: int) -> int:
    given = request.query_params.get(name)
    if given is None:
        return default
    if not (given.isascii() and given.isdigit() and len(given) < 10):
        raise HTTPException(400, f"{name}: want a whole number, got {given[:50]!r}")
    return int(given)


def _short(reading: AnyReading) -> dict[str, Any]:
    counts = {name: getattr(reading, name) for name in ("late", "rejected", "sampled_out")}
    return {
        "window": reading.key.id,
        "segment": reading.key.segment,
        "start": rfc3339(reading.key.start),
        "end": rfc3339(reading.key.end),
        "events": {"used": reading.events, **counts},
        "complete": not reading.gaps,
        "gaps": reading.gaps,
        "member": reading.member,
        "partitions": reading.partitions,
        "verdict": reading.verdict,
        "reasons": reading.reasons,
        "recent": None if reading.recent is None else {"verdict": reading.recent, "reasons": reading.recent_reasons},
        "labelled": reading.labelled,
        "moved": [asdict(feature) for feature in reading.moved],
        "apply": reading.apply,
        "quality": reading.quality,
        "volume": reading.volume,
        "doubt": reading.doubt,
        **reading.answer.summary(),
    }


def _alarm(track: Track | None) -> dict[str, Any] | None:
    """Whether enough of the last windows moved."""
    if track is None or not track.known.states:
        return None
    alarm = track.alarm
    left = {"since": rfc3339(alarm.since), "features": alarm.by} if alarm.since else None
    return {"raised": alarm.alarm, "moved": alarm.moved, "of": len(alarm.flags), "reference_left": left}


def _open_alarms(tracks: Mapping[str, Track]) -> list[dict[str, Any]]:
    """Those of the stream, then those of its segments."""
    return [
        {
            "segment": segment,
            "series": series,
            "since": rfc3339(alarm.since),
            "windows": alarm.windows,
            "size": alarm.size,
            "once_in": alarm.threshold,
        }
        for segment, track in sorted(tracks.items())
        for series, alarm in track.open_alarms.items()
    ]


def _changes(track: Track | None) -> list[dict[str, Any]]:
    """The latest changes of level, the newest first."""
    if track is None:
        return []
    return [
        {
            "window": change.window,
            "end": rfc3339(change.end),
            "detector": track.changes.detector,
            "series": change.series,
        }
        for change in reversed(track.changes.found)
    ]


def _reference(facts: StreamFacts) -> dict[str, Any]:
    return {
        "kind": facts.kind,
        "version": facts.reference,
        "events": facts.reference_events,
        "features": facts.features,
        **facts.model.summary(),
    }


def description() -> dict[str, Any]:
    """The API in OpenAPI 3.1."""
    _, components = msgspec.json.schema_components(
        [WindowResult, RegressionResult, Recalibration, OutcomeResult, RegressionOutcome],
        ref_template="#/components/schemas/{name}",
    )
    segment = _parameter("segment", "query", "A segment of the stream, such as `country=BE`; empty: the whole stream.")
    stream = _parameter("stream", "path", "The stream's name.")
    limit = _parameter("limit", "query", "How many windows at most; 100 if not said.", "integer")
    wait = _parameter("wait", "query", f"With If-None-Match: wait for another, {LONGEST_WAIT} s at most.", "integer")
    paths = {
        "/api/streams": _operation("All streams with their last verdict."),
        "/api/streams/{stream}": _operation("One stream: its reference, segments, last window.", stream),
        "/api/streams/{stream}/windows": _operation("The last windows, newest first.", stream, segment, limit),
        "/api/streams/{stream}/result": _operation(
            "The last window's whole result.", stream, segment, schemas=("WindowResult", "RegressionResult")
        ),
        "/api/streams/{stream}/recalibration": _operation(
            "The last recalibration; the feed for scoring services.",
            stream,
            segment,
            wait,
            schemas=("Recalibration", "RegressionRecalibration"),
        ),
        "/api/streams/{stream}/outcomes": _operation(
            "The last windows whose labels have come, newest first.", stream, segment, limit
        ),
        "/metrics": _operation("Metrics for Prometheus.", media="text/plain"),
        "/healthz": _operation("Whether the process is alive."),
        "/readyz": _operation("Whether it makes progress, and reaches its source and sink; 503 if not."),
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "Shiftwatch", "version": __version__, "license": {"name": "Apache-2.0"}},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _parameter(name: str, place: str, words: str, kind: str = "string") -> Mapping[str, Any]:
    return {"name": name, "in": place, "required": place == "path", "description": words, "schema": {"type": kind}}


def _operation(
    summary: str, *parameters: Mapping[str, Any], schemas: Sequence[str] = (), media: str = "application/json"
) -> dict[str, Any]:
    known = [{"$ref": f"#/components/schemas/{schema}"} for schema in schemas]
    shape: dict[str, Any] = {"anyOf": known} if known else {}
    responses: dict[str, Any] = {"200": {"description": "As asked.", "content": {media: {"schema": shape}}}}
    if parameters:
        responses["404"] = {"description": "There is no such stream or segment, or no window yet."}
    return {"get": {"summary": summary, "parameters": list(parameters), "responses": responses}}
