"""
Whether a cycle keeps its phase: a clock does, a swing that noise keeps alive does not.

The amplitude at the period's frequency is measured in blocks of two cycles, as a
complex number. Over all blocks a clock's amplitudes point in one direction; those
of a stochastic cycle (noise through a resonance) turn at random, and their mean is much
smaller than they are. The noise of a block is what it has between the period's harmonics.
"""

import numpy as np
from numpy.typing import NDArray

from nodescope.use.studies.series import FloatArray

# Two cycles per block, or four or eight where noise hides the phase of two; and
# at least sixteen samples.
BLOCK_CYCLES = (2, 4, 8)
BLOCK_SAMPLES = 16

# With fewer blocks a phase that turns cannot be told from a length that is a little off.
FEWEST_BLOCKS = 5

# A block's amplitude is clear of noise when it has four times its power.
CLEAR = 4.0

# Directions are compared at frequencies a quarter of a turn per series apart.
PADDING = 4

ComplexArray = NDArray[np.complex128]


def phase_stability(values: FloatArray, period: float, strong: float = 0.0) -> float:
    """
    The share of the cycle's power that keeps one phase, 0 to 1; 1 where there are too few cycles to tell.

    The values are evenly sampled, without missing ones. Blocks in which the cycle is
    weaker than this share of its largest do not count. In doubt the result is
    higher: it is the upper end of what two standard errors of the noise allow.
    """
    stability = 1.0
    for cycles in BLOCK_CYCLES:
        blocks = int(len(values) / (cycles * period))
        if blocks < FEWEST_BLOCKS:
            break
        if cycles * period < BLOCK_SAMPLES:
            continue
        amplitudes, noise = block_amplitudes(values, period, cycles, blocks)
        counts = np.abs(amplitudes) >= strong * float(np.quantile(np.abs(amplitudes), 0.95))
        total = float(np.mean(np.abs(amplitudes[counts]) ** 2))
        stability = kept_share(np.where(counts, amplitudes, 0.0), int(counts.sum()), total, noise)
        if total >= CLEAR * noise:
            break
    return stability


def kept_share(amplitudes: ComplexArray, blocks: int, total: float, noise: float) -> float:
    """Of so many blocks' total power, what is left when they are added; at the frequency at which most is."""
    turned = np.abs(np.fft.fft(amplitudes, PADDING * len(amplitudes))) ** 2 / blocks**2
    signal = total - noise
    doubt = 2 * noise * np.sqrt(2 / blocks)
    if signal <= doubt:
        return 1.0
    return float(np.clip((float(turned.max()) - noise / blocks + doubt) / signal, 0.0, 1.0))


def block_amplitudes(
    values: FloatArray, period: float, cycles: int, blocks: int
) -> tuple[ComplexArray, float]:
    """The complex amplitude of every block, and the mean power that noise alone gives it."""
    edges = np.round(np.arange(blocks + 1) * cycles * period).astype(np.int64)
    angle = 2 * np.pi / period * np.arange(edges[-1])
    turning = np.exp(-1j * angle)
    beside = np.exp(-1j * angle / cycles)
    turned = values[: edges[-1]] * turning
    centre, above, below = (
        np.add.reduceat(row, edges[:-1]) / np.diff(edges)
        for row in (turned, turned * beside, turned * beside.conj())
    )
    return np.asarray(centre, dtype=np.complex128), float(
        np.mean(np.abs(above) ** 2) + np.mean(np.abs(below) ** 2)
    ) / 2
