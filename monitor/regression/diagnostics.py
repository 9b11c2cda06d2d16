"""Have the chains met, and how many independent draws are they worth: split R-hat and effective sample size."""

import numpy as np

from monitor.arrays import Vector
from monitor.regression.maximise import Cube


def split_r_hat(draws: Cube) -> Vector:
    """Split R-hat of draws (n, chains, quantities): Gelman et al., Bayesian Data Analysis, 3rd ed., eq 11.4.

    Every chain is cut in two, so that a trend shows like a disagreement. A quantity that never varies gives 1.
    """
    half = draws.shape[0] // 2
    halves = np.concatenate([draws[:half], draws[-half:]], axis=1)
    within = halves.var(axis=0, ddof=1).mean(axis=0)
    between = halves.mean(axis=0).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.sqrt((half - 1.0) / half + between / within)
    constant: Vector = np.where((within == 0) & (between == 0), 1.0, ratio)
    return constant


def effective_size(draws: Cube) -> Vector:
    """Effective number of independent draws (n, chains, quantities): same book, eq 11.8.

    Autocorrelations are summed up to Geyer's first negative pair, the pairs made monotone.
    """
    length, chains, _ = draws.shape
    centred = draws - draws.mean(axis=0)
    size = 1 << (2 * length - 1).bit_length()
    spectrum = np.fft.rfft(centred, size, axis=0)
    covariance = np.fft.irfft(spectrum * spectrum.conj(), size, axis=0)[:length].mean(axis=1) / length
    within = covariance[0] * length / (length - 1.0)
    between = draws.mean(axis=0).var(axis=0, ddof=1) if chains > 1 else np.zeros(draws.shape[2])
    total = within * (length - 1.0) / length + between
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = 1.0 - (within - covariance * length / (length - 1.0)) / total
    correlation[0] = 1.0
    pairs = correlation[: length - length % 2].reshape(-1, 2, draws.shape[2]).sum(axis=1)
    alive = np.logical_and.accumulate(pairs > 0, axis=0)
    summed = np.sum(np.minimum.accumulate(pairs, axis=0) * alive, axis=0)
    everything = float(length * chains)
    with np.errstate(divide="ignore", invalid="ignore"):
        effective = everything / np.maximum(2.0 * summed - 1.0, 1.0 / np.log10(everything))
    # A quantity that never varies is known exactly by every draw.
    size_: Vector = np.where(total > 0, effective, everything)
    return size_
