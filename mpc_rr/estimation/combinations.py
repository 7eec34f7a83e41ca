"""Views of attribute combinations: every combination once, no attribute twice in a view.

Paper 002 asks each client all combinations of one view. With d attributes and combinations of k, a
view has at most ⌊d/k⌋ of them, so at least ⌈C(d, k) / ⌊d/k⌋⌉ views are needed. Baranyai's theorem
says that so many suffice; the construction here follows the proof by flows (Brouwer & Schrijver
1979). Attributes are put in one after the other. Before attribute l + 1, every view holds parts of
its combinations; a part of size s stands for C(d − l, k − s) combinations that begin with it, so it
must get the new attribute in C(d − l − 1, k − s − 1) of the views that hold it, and no view may use
the attribute twice. Spread evenly that is possible with fractions, hence with whole numbers, and a
maximum flow finds them. Pairs (k = 2) are the round-robin tournament, which needs no flow.
"""

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from mpc_rr.errors import InputError

Combination = tuple[int, ...]
CombinationView = tuple[Combination, ...]
MOST_ASKED = 50_000


def fewest_views(attributes: int, together: int) -> int:
    """How many views there must be at least."""
    return -(-math.comb(attributes, together) // (attributes // together))


@lru_cache(maxsize=16)
def combination_views(attributes: int, together: int) -> tuple[CombinationView, ...]:
    """As few views as possible, so that every combination is in exactly one of them."""
    if not 1 <= together <= attributes:
        raise InputError(f"combinations of {together} out of {attributes} attributes do not exist")
    if math.comb(attributes, together) > MOST_ASKED:
        raise InputError(
            f"{attributes} attributes have {math.comb(attributes, together):,} combinations of "
            f"{together}; more than {MOST_ASKED:,} are not asked"
        )
    if together == 2:
        return _tournament(attributes)
    return _by_flows(attributes, together)


def chosen_views(chosen: Sequence[Combination]) -> tuple[CombinationView, ...]:
    """Views of these combinations alone: each goes to the first view that none of it is in."""
    views: list[list[Combination]] = []
    for combination in sorted(chosen):
        free = (view for view in views if not any(set(combination) & set(c) for c in view))
        view = next(free, None)
        if view is None:
            views.append([combination])
        else:
            view.append(combination)
    return tuple(tuple(view) for view in views)


@lru_cache(maxsize=16)
def divided(views: tuple[CombinationView, ...], most: int) -> tuple[CombinationView, ...]:
    """Every view cut into parts of at most so many combinations, as even as can be."""
    found = []
    for view in views:
        parts = -(-len(view) // most)
        cuts = [len(view) * part // parts for part in range(parts + 1)]
        found += [view[start:end] for start, end in itertools.pairwise(cuts)]
    return tuple(found)


def _tournament(attributes: int) -> tuple[CombinationView, ...]:
    """The round-robin schedule: one attribute stays, the others go round."""
    players = attributes + attributes % 2
    views = []
    for turn in range(players - 1):
        ring = [(turn + step) % (players - 1) for step in range(players - 1)]
        pairs = [(ring[0], players - 1)]
        pairs += [(ring[step], ring[-step]) for step in range(1, players // 2)]
        in_order = (tuple(sorted(pair)) for pair in pairs if max(pair) < attributes)
        views.append(tuple(sorted(in_order)))
    return tuple(views)


def _by_flows(attributes: int, together: int) -> tuple[CombinationView, ...]:
    total, at_once = math.comb(attributes, together), attributes // together
    sizes = [at_once] * (total // at_once) + ([total % at_once] if total % at_once else [])
    views: list[Counter[Combination]] = [Counter({(): size}) for size in sizes]
    for attribute in range(attributes):
        for view, part in enumerate(_who_gets_it(views, attributes, together, attribute)):
            if part is not None:
                views[view][part] -= 1
                views[view] += Counter({(*part, attribute): 1})
    return tuple(tuple(sorted(view.elements())) for view in views)


def _who_gets_it(
    views: list[Counter[Combination]], attributes: int, together: int, attribute: int
) -> list[Combination | None]:
    """The part of each view to which an attribute is added, or None.

    The network: source → (those who must, those who may) → views → parts → sink.
    """
    left = attributes - attribute
    demand: dict[Combination, int] = {}
    holders: dict[Combination, list[int]] = defaultdict(list)
    must = []
    for number, view in enumerate(views):
        open_places = 0
        for part, often in view.items():
            missing = together - len(part)
            open_places += missing * often
            if missing:
                holders[part].append(number)
                demand[part] = math.comb(left - 1, missing - 1)
        must.append(open_places == left)
    parts = list(demand)
    source, sink = 0, 3 + len(views) + len(parts)
    edges = [(source, 1, sum(must)), (source, 2, sum(demand.values()) - sum(must))]
    edges += [(1 if needed else 2, 3 + number, 1) for number, needed in enumerate(must)]
    for place, part in enumerate(parts):
        node = 3 + len(views) + place
        edges += [(3 + number, node, 1) for number in holders[part]]
        edges.append((node, sink, demand[part]))
    chosen: list[Combination | None] = [None] * len(views)
    for start, end, carried in _flow(edges, sink, sum(demand.values())):
        if 3 <= start < 3 + len(views) and carried > 0:
            chosen[start - 3] = parts[end - 3 - len(views)]
    return chosen


def _flow(edges: list[tuple[int, int, int]], sink: int, wanted: int) -> list[tuple[int, int, int]]:
    """A maximum flow from node 0 to the sink, edge by edge."""
    from scipy.sparse import coo_array  # noqa: PLC0415  (a tenth of the time it takes to start)
    from scipy.sparse.csgraph import maximum_flow  # noqa: PLC0415

    starts, ends, capacities = np.array(edges, dtype=np.int32).T
    shape = (sink + 1, sink + 1)
    graph = coo_array((capacities, (starts, ends)), shape=shape).tocsr()
    found = maximum_flow(graph, 0, sink)
    assert found.flow_value == wanted, "Baranyai's theorem says that this flow exists"
    carried = found.flow.tocoo()
    return [
        (int(start), int(end), int(amount))
        for start, end, amount in zip(carried.row, carried.col, carried.data, strict=True)
    ]
