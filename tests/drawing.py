"""Draws a second time: written from ``docs/draws.md`` alone, one at a time, in fractions."""

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np

from mpc_rr.estimation.blocks import respond
from mpc_rr.estimation.matrix import KeepOrUniform
from mpc_rr.estimation.views import SubsetMechanism
from mpc_rr.privacy.discrete_gaussian import discrete_gaussian
from mpc_rr.privacy.noise import NoiseShares
from mpc_rr.randomness import Randomness


class Script(Randomness):
    """Bytes that are given; it counts how many were taken."""

    def __init__(self, stream):
        self.stream, self.position = stream, 0

    def bytes(self, count):
        start, self.position = self.position, self.position + count
        assert self.position <= len(self.stream), "more bytes were taken than there are"
        return self.stream[start : self.position]

    def fork(self, label):
        raise NotImplementedError(label)

    def number(self, width):
        return int.from_bytes(self.bytes(width), "little")


def words(*numbers):
    return b"".join(number.to_bytes(8, "little") for number in numbers)


def floats(texts):
    return [float.fromhex(text) for text in texts]


def ours(rng, case):
    """The draw that a vector asks for, by the package."""
    match case["draw"]:
        case "below":
            drawn = rng.below(case["modulus"], (case["count"],)).tolist()
        case "bernoulli":
            drawn = bool(rng.bernoulli(float.fromhex(case["chance"]), ()))
        case "categorical":
            weights = case.get("integers") or np.array(floats(case["weights"]))
            drawn = int(rng.categorical(weights, ()))
        case "subset":
            drawn = rng.subsets(case["size"], case["chosen"], 1)[0].tolist()
        case "keep_or_uniform":
            if "keep" in case:
                matrix = KeepOrUniform(case["size"], float.fromhex(case["keep"]))
            else:
                matrix = KeepOrUniform.from_epsilon(case["size"], float.fromhex(case["epsilon"]))
            drawn = int(matrix.randomize(np.array([case["truth"]]), rng)[0])
        case "set_of_values":
            epsilon = float.fromhex(case["epsilon"])
            mechanism = SubsetMechanism(case["size"], epsilon, case["chosen"])
            drawn = mechanism.randomize(np.array([case["truth"]]), rng)[0].tolist()
        case "block_answer":
            table = np.array(floats(case["weights"]))
            drawn = int(respond(np.array([case["truth"]]), table, float.fromhex(case["p"]), rng)[0])
        case "noise" | "discrete_gaussian":
            drawn = our_noise(rng, case).tolist()
        case other:
            raise ValueError(other)
    return drawn


def our_noise(rng, case):
    if case["draw"] == "discrete_gaussian":
        return discrete_gaussian(float.fromhex(case["variance"]), case["count"], rng)
    epsilon = float.fromhex(case["epsilon"])
    return NoiseShares(epsilon, case["sensitivity"], case["honest"], case["cells"]).draw(rng)


def theirs(rng, case):
    """The same, by the rules."""
    match case["draw"]:
        case "below":
            drawn = below(rng, case["modulus"], case["count"])
        case "bernoulli":
            drawn = bernoulli(rng, Fraction(float.fromhex(case["chance"])))
        case "categorical":
            weights = case.get("integers") or floats(case["weights"])
            drawn = categorical(rng, [Fraction(weight) for weight in weights])
        case "subset":
            drawn = subset(rng, case["size"], case["chosen"])
        case "keep_or_uniform":
            told = truth_is_told(rng, *chances_to_keep(case))
            other = below(rng, case["size"], 1)[0]
            drawn = case["truth"] if told else other
        case "set_of_values":
            drawn = set_of_values(rng, case)
        case "block_answer":
            told = bernoulli(rng, Fraction(float.fromhex(case["p"])))
            other = categorical(rng, [Fraction(weight) for weight in floats(case["weights"])])
            drawn = case["truth"] if told else other
        case "noise":
            drawn = noise_of(rng, case)
        case "discrete_gaussian":
            drawn = gaussian_of(rng, Fraction(float.fromhex(case["variance"])), case["count"])
        case other:
            raise ValueError(other)
    return drawn


def below(rng, modulus, count):
    width = next(width for width in (1, 2, 4, 8) if modulus <= 1 << (8 * width))
    top = 1 << (8 * width)
    accepted = top - top % modulus
    drawn = []
    while (missing := count - len(drawn)) > 0:
        taken = [rng.number(width) for _ in range(missing * top // accepted + 16)]
        drawn += [number % modulus for number in taken if number < accepted][:missing]
    return drawn


def bernoulli(rng, chance):
    word, places = rng.number(8), chance * 2**64
    whole, rest = math.floor(places), places - math.floor(places)
    if word != whole:
        return word < whole
    return rest > 0 and bernoulli(rng, rest)


def categorical(rng, weights):
    limits = [Fraction(0), *itertools.accumulate(weights)]
    low, width = Fraction(0), Fraction(1)
    while True:
        width /= 2**64
        low += rng.number(8) * width
        for i, (start, end) in enumerate(itertools.pairwise(limits)):
            if start <= low * limits[-1] and (low + width) * limits[-1] <= end:
                return i


def subset(rng, size, chosen):
    if chosen in (0, size):
        return list(range(chosen))
    while True:
        keys = [rng.number(4) for _ in range(size)]
        last = sorted(keys)[chosen - 1]
        wins = [number for number, key in enumerate(keys) if key <= last]
        if len(wins) == chosen:
            return wins


def truth_is_told(rng, told, hidden):
    if told <= hidden:
        return bernoulli(rng, Fraction(told))
    return not bernoulli(rng, Fraction(hidden))


def towards_privacy(told, hidden):
    return told * (1 - 2.0**-48), min(hidden * (1 + 2.0**-48), 1.0)


def chances_to_keep(case):
    if "keep" in case:
        keep = float.fromhex(case["keep"])
        return keep, 1 - keep
    size, epsilon = case["size"], float.fromhex(case["epsilon"])
    e = math.exp(-epsilon)
    total = 1 + (size - 1) * e
    return towards_privacy(-math.expm1(-epsilon) / total, size * e / total)


def set_of_values(rng, case):
    size, chosen, truth = case["size"], case["chosen"], case["truth"]
    epsilon = float.fromhex(case["epsilon"])
    e = math.exp(-epsilon)
    total = chosen + (size - chosen) * e
    told = truth_is_told(
        rng, *towards_privacy(chosen * -math.expm1(-epsilon) / total, size * e / total)
    )
    by_chance = below(rng, size, 1)[0] < chosen
    others = [value for value in range(size) if value != truth]
    values = [others[number] for number in subset(rng, size - 1, chosen)]
    place = below(rng, chosen, 1)[0]
    if told or by_chance:
        values[place] = truth
    return sorted(values)


def noise_of(rng, case):
    taken = [rng.number(8) for _ in range(2 * case["cells"])]
    scale = case["sensitivity"] / Decimal(float.fromhex(case["epsilon"]))
    table = polya_words(case["honest"], scale)
    numbers = [sum(word < limit for limit in table) for word in taken]
    half = case["cells"]
    return [up - down for up, down in zip(numbers[:half], numbers[half:], strict=True)]


def polya_words(honest, scale):
    """2⁶⁴·P(Pólya > k), rounded, from a hundred digits."""
    with localcontext() as context:
        context.prec = 100
        alpha, shape = (-1 / scale).exp(), 1 / Decimal(honest)
        chance = (1 - alpha) ** shape
        above, table = 1 - chance, []
        while (word := int((above * 2**64).to_integral_value())) > 0:
            table.append(word)
            chance *= alpha * (len(table) - 1 + shape) / len(table)
            above -= chance
        return table


def gaussian_of(rng, variance, count):
    side = 1
    while (2 * side) ** 2 <= variance:
        side *= 2
    drawn = []
    while (missing := count - len(drawn)) > 0:
        proposals = 5 * missing // 2 + 16
        digits = [rng.number(8) for _ in range(proposals)]
        judges = [rng.number(8) for _ in range(proposals)]
        halvings = halvings_of(rng, [word // (2 * side) for word in digits], 2**63 // side)
        kept = []
        for word, judge, q in zip(digits, judges, halvings, strict=True):
            x = q * side + word // 2 % side
            power = x * x / (2 * variance) + variance / (4 * side * side)
            if below_chance(rng, judge, q, power) and not (x == 0 and word % 2):
                kept.append(-x if word % 2 else x)
        drawn += kept[:missing]
    return drawn


def halvings_of(rng, rests, end):
    """How often each can be halved; of 0, as often as ``end``, and then as another word can."""
    halvings = [0] * len(rests)
    open_ones = list(range(len(rests)))
    while open_ones:
        for k in open_ones:
            rest = rests[k] or end
            halvings[k] += (rest & -rest).bit_length() - 1
        open_ones = [k for k in open_ones if rests[k] == 0]
        rests = rests.copy()
        for k in open_ones:
            rests[k] = rng.number(8)
        end = 2**64
    return halvings


def below_chance(rng, judge, q, power):
    """Whether U, which begins with these 64 binary places, is below 2^q·exp(−power)."""
    known = 64
    with localcontext() as context:
        context.prec = 400
        chance = 2**q * (-Decimal(power.numerator) / Decimal(power.denominator)).exp()
        while True:
            if Decimal(judge + 1) / 2**known < chance:
                return True
            if Decimal(judge) / 2**known > chance:
                return False
            judge, known = judge << 64 | rng.number(8), known + 64
