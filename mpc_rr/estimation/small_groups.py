"""Which groups to hide so that no sum over fewer people than a limit is shown, nor follows.

Sums over all people are shown, so what is over the hidden groups together follows from the others:
they must be over enough people as a whole. The same of those who gave each number, and of those who
gave an end of its range.
"""

from collections.abc import Callable, Collection, Iterable, Sequence


def groups_to_hide(
    people: Sequence[Sequence[int]],
    below: int,
    telling: Callable[[Collection[int]], bool] = lambda _: False,
) -> frozenset[int]:
    """``people``: group by group, how many there are, and how many of them gave each number.

    Hides those of which any of this is from 1 to ``below`` − 1, or whose sums are ``telling``, then
    the smallest of the others until the hidden ones are enough together, and not telling. Numbers
    that fewer gave in all are not looked at: nothing of these may be shown.
    """
    whole = [sum(column) for column in zip(*people, strict=True)]
    asked = [k for k, total in enumerate(whole) if not 0 < total < below]
    hidden = {
        g for g, row in enumerate(people) if any(0 < row[k] < below for k in asked) or telling([g])
    }
    rest = sorted(set(range(len(people))) - hidden, key=lambda g: (people[g][0], g))
    while rest and (not _enough(people, hidden, asked, below) or telling(hidden)):
        hidden.add(rest.pop(0))
    return frozenset(hidden)


def _enough(
    people: Sequence[Sequence[int]], hidden: Collection[int], asked: Sequence[int], below: int
) -> bool:
    together = (sum(people[g][k] for g in hidden) for k in asked)
    return not any(0 < total < below for total in together)


def small_rest(gave: int, ends: Iterable[int], below: int) -> bool:
    """Whether from these counts of some who gave a number a small count of the others follows."""
    counts = [*ends]
    return any(0 < gave - found < below for found in (*counts, sum(counts)))
