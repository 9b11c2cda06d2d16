"""How the hold-out varied over time, for the preflight: by how much, which blocks are odd, and what can be seen."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.special import stdtrit

from monitor.arrays import Matrix
from monitor.reference.blocks import season_text
from monitor.reference.classifier import Reference
from monitor.shifts import prepare
from monitor.shifts.fit import BlockMatches, block_matches
from monitor.tolerances import BLOCKS_ADVISED, FEWEST_BLOCKS, LEAST_EXPLAINED, ODD_BLOCK, VERDICT_LEVEL

PRIOR_SHIFT = 0.2
ODD_SHOWN = 5
Found = dict[str, Any]


def measured(reference: Reference) -> Found | None:
    """Plain JSON; None where the hold-out was not cut into blocks."""
    blocks = reference.blocks
    if blocks is None:
        return None
    found: Found = {
        "length": blocks.length,
        "number": blocks.number,
        "parts": blocks.parts,
        "stretches": blocks.stretches,
        "events": float(np.median(blocks.events)),
    }
    if blocks.season is not None:
        found["season"] = {
            "length": blocks.season.length,
            "window": blocks.season.window,
            "explained": blocks.season.explained,
            **({} if blocks.inputs_explained is None else {"inputs_explained": blocks.inputs_explained}),
        }
    ready = prepare(reference)
    matches = block_matches((ready.seasonal or ready).moments)
    if matches is None:
        return found
    spread = np.sqrt(np.diag(matches.gaps.T @ matches.gaps) / len(matches.gaps))
    widest = int(np.argmax(spread))
    varied = matches.variation
    return found | {
        "design_effect": 1.0 if varied is None else varied.design_effect,
        "varies": varied is not None,
        "class": reference.classes[widest],
        "spread": float(spread[widest]),
        "one_window": _visible(matches, 1) * float(spread[widest]),
        "ten_windows": _visible(matches, 10) * float(spread[widest]),
        "odd": _odd(reference, matches),
    }


def advice(found: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Verdict (good, mind), title and text of each thing to know."""
    if not found:
        return []
    length, number = found["length"], found["number"]
    if number < FEWEST_BLOCKS:
        text = (
            f"The hold-out has {number} blocks of {length}: {FEWEST_BLOCKS} are needed to know how much they differ, "
            f"{BLOCKS_ADVISED} are better. Windows are compared as if their events were independent."
        )
        return [("mind", "Too few blocks", text)]
    parts = found["parts"]
    said = f"{number} blocks of {length} (about {found['events']:,.0f} events each)"
    few = f" With {BLOCKS_ADVISED} or more blocks it would be known better." if number < BLOCKS_ADVISED else ""
    if parts == 1 and found["stretches"] < number:
        few = f" Neighbours are alike: they tell as much as {found['stretches']} blocks that are not.{few}"
    if parts > 1:
        part = {2: "half", 3: "third"}.get(parts, f"{parts}th part")
        said = f"{number} blocks of a {part} of {length} (about {found['events']:,.0f} events each)"
        few = (
            f" The hold-out is only {math.ceil(number / parts)} times {length} long, and {BLOCKS_ADVISED} are better: "
            "these shorter blocks stand for windows. Changes that take longer than the hold-out are not in them."
        )
    if found["varies"]:
        text = f"{said} differ {found['design_effect']:.1f} times as much as independent samples would.{few}"
    else:
        text = f"{said} differ no more than independent samples would: windows are compared as such.{few}"
    mix = (
        f"From block to block the share of {found['class']} varies by {found['spread']:.1%} (one standard deviation): "
        f"a shift of {PRIOR_SHIFT:.0%} is {PRIOR_SHIFT / max(found['spread'], 1e-9):.1f} of them. One window shows a "
        f"shift of {found['one_window']:.1%}, ten windows together one of {found['ten_windows']:.1%}."
    )
    visible = "good" if found["one_window"] <= PRIOR_SHIFT else "mind"
    told = [
        ("mind" if few else "good", "The hold-out over time", text),
        (visible, "Visible beside natural change", mix),
    ]
    if season := found.get("season"):
        told.append(_season(season))
    if found["odd"]:
        odd = "; ".join(f"{block['when']}: {block['why']}" for block in found["odd"])
        told.append(("mind", "Odd blocks", f"These differ from the others, and widen what counts as normal: {odd}."))
    return told


def _season(found: Found) -> tuple[str, str, str]:
    share, length = found["explained"], season_text(found["length"])
    text = f"{share:.0%} of how the class mix varies between windows goes with the time in the season of {length}."
    if share < LEAST_EXPLAINED:
        verdict, text = "mind", f"{text} The mix hardly follows it: what is usual is the same at any time."
    else:
        verdict, text = "good", f"{text} Windows are held against the class mix of the same time."
    if (of_inputs := found.get("inputs_explained")) is not None:
        text += f" {of_inputs:.0%} of how features and scores vary beyond it goes with that time"
        if of_inputs < LEAST_EXPLAINED:
            return "mind", "Season", f"{text}: they hardly follow it, and are held against the whole hold-out."
        return "good", "Season", f"{text}, and they are held against those of the same time."
    return verdict, "Season", text


def _visible(matches: BlockMatches, windows: int) -> float:
    """By how many standard deviations the mean of so many windows has to be off."""
    number = len(matches.gaps)
    return float(-stdtrit(number - 1, VERDICT_LEVEL / 6) * np.sqrt(1 / windows + 1 / number))


def _odd(reference: Reference, matches: BlockMatches) -> list[Found]:
    """Blocks that are far from the others, the oddest first, each with its feature or class that is farthest off."""
    blocks = reference.blocks
    if blocks is None:
        return []
    known, distances = np.ones(blocks.number, dtype=np.bool_), blocks.distances
    if blocks.seasonal is not None and (mates := blocks.mates) is not None:
        known, distances = mates.known, blocks.seasonal.distances
    away = {profile.feature.name: _by_others(np.log(np.maximum(distances[:, j], 1e-9)))
            for j, profile in enumerate(reference.features)}  # fmt: skip
    away |= {
        f"the share of {name}": np.abs(_by_others(blocks.shares[:, y])) for y, name in enumerate(reference.classes)
    }
    names, scores, whole = list(away), np.stack(list(away.values())), np.zeros(blocks.number)
    whole[known] = _by_others(np.log(np.maximum(matches.statistics, 1e-300)))
    worst = np.maximum(whole, scores.max(axis=0))
    order = [int(k) for k in np.argsort(-worst, kind="stable")[:ODD_SHOWN] if worst[k] > ODD_BLOCK]
    return [{"when": _when(reference, k), "why": _why(names, scores, k), "deviations": float(worst[k])} for k in order]


def _why(names: list[str], scores: Matrix, block: int) -> str:
    farthest = int(np.argmax(scores[:, block]))
    return names[farthest] if scores[farthest, block] > ODD_BLOCK / 2 else "many features together"


def _by_others(values: Any) -> Any:
    """How many standard deviations of the other values each is from their mean."""
    number = values.size
    mean = (values.sum() - values) / (number - 1)
    squares = ((values**2).sum() - values**2) / (number - 1) - mean**2
    return (values - mean) / np.sqrt(np.maximum(squares * (number - 1) / (number - 2), 1e-12))


def _when(reference: Reference, block: int) -> str:
    blocks = reference.blocks
    if blocks is None:
        return ""
    start, end = int(blocks.starts[block]), int(blocks.ends[block])
    if not blocks.timed:
        return f"rows {start + 1:,} to {end + 1:,}"
    first, last = (np.datetime64(moment, "us").astype("datetime64[m]") for moment in (start, end))
    return f"{first} to {last} UTC"
