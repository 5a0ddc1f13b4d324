"""Pools: sets of outcomes that wait for the same stack, each with the tokens that wait for it.

All outcomes of a pool look at the next state down the stack together, as far as the most curious of them
does; states that look the same to it share a **step**: the tokens that this accepts, and the pool of those
that still wait. When none of these looks at the same state again, it is passed over.

Sets of tokens are hashes here, sums of one random integer for each token, so that equal sets are found
without being built; what they wait for is hashed in as a factor. How one of the equal sets is made is
remembered: each pool knows the outcomes, of another pool or of a group, that it came from.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from jaxgcd._budget import Budget
from jaxgcd._hashing import mixed
from jaxgcd._numbering import numbered
from jaxgcd.tables.accept import Acceptance
from jaxgcd.tables.growing import Growing, pieces, ranges
from jaxgcd.tables.outcomes import ACCEPTED, REJECTED, SKIP, UNKNOWN

CHUNK = 1 << 19
"""About how many outcomes are looked at together."""

NO_POOL = 0
_STREAM = 2 << 32  # not that of the tokens' random integers
NOTHING = 0
"""The portion without tokens."""


class Portion(NamedTuple):
    """Tokens of `group`: those whose suffix class or fan is one of its members `which`."""

    group: int
    which: np.ndarray  # int64[members], indices in the group


class Landing(NamedTuple):
    """Where some sets of outcomes lead: arrays with one value for each set."""

    accepted: np.ndarray  # int64, the portion of the tokens accepted, or NOTHING
    pool: np.ndarray  # int64, the pool of those that wait, or NO_POOL
    skip: np.ndarray  # int64, how many states are passed over first


class Pools:
    """Builds pools and steps on demand.

    Args:
        acceptance: says what becomes of outcomes.
        budget: what may be used up.

    Attributes:
        portions: the sets of tokens that are accepted together.
        sums: the sums of their tokens' random integers.
    """

    def __init__(self, acceptance: Acceptance, budget: Budget):
        self._acceptance = acceptance
        self._outcomes = acceptance.outcomes
        self._budget = budget
        self.portions = [Portion(0, np.zeros(0, np.int64))]
        self.sums = Growing(np.uint64)
        self.sums.extend([0])
        self._portion_number: dict[int, int] = {0: NOTHING}
        self._number: dict[int, int] = {0: NO_POOL}
        self._members, self._member_sums = Growing(np.int64), Growing(np.uint64)
        self._start, self._length = Growing(np.int64), Growing(np.int64)
        self._view, self._first_step = Growing(np.int64), Growing(np.int64)
        self._accepted, self._pool, self._skip = Growing(np.int64), Growing(np.int64), Growing(np.int64)
        self._origins: list[tuple[int, np.ndarray]] = [(0, np.zeros(0, np.int32))]
        for column in (self._start, self._length, self._view, self._first_step):
            column.extend([0])

    def __len__(self) -> int:
        return len(self._origins)

    def land(
        self, outcomes: np.ndarray, sums: np.ndarray, length: np.ndarray, origins: np.ndarray
    ) -> Landing:
        """Where sets of outcomes lead.

        Args:
            outcomes: set after set.
            sums: those of each one's tokens.
            length: how many each set has, at least one.
            origins: what each set comes from: the outcomes of a pool, or `-1 - g` for those of group `g`.
        """
        first = np.cumsum(length) - length
        accepted = self._accept(outcomes, sums, first, origins)
        waiting = outcomes > ACCEPTED
        skip = np.minimum.reduceat(np.where(waiting, outcomes & SKIP, SKIP), first)
        lowered = np.where(waiting, outcomes - np.repeat(skip, length), REJECTED)
        hashes = np.where(waiting, mixed(lowered + _STREAM) * sums, np.uint64(0))
        keys, where, which = numbered(np.add.reduceat(hashes, first))
        new = np.array([key not in self._number for key in keys.tolist()])
        if new.any():
            self._make(keys[new], where[new], lowered, sums, length, origins)
        pool = np.array([self._number[key] for key in keys.tolist()])[which]
        return Landing(accepted, pool, skip)

    def _accept(self, outcomes, sums, first: np.ndarray, origins: np.ndarray) -> np.ndarray:
        """The portions of the tokens accepted in sets of outcomes that begin at `first`."""
        accepted = np.add.reduceat(np.where(outcomes == ACCEPTED, sums, np.uint64(0)), first)
        keys, where, which = numbered(accepted)
        ends = np.append(first[1:], len(outcomes))
        new = np.array([key not in self._portion_number for key in keys.tolist()], bool)
        self._portion_number.update(
            zip(keys[new].tolist(), itertools.count(len(self.portions)), strict=False)
        )
        self.sums.extend(keys[new])
        for job in where[new].tolist():
            chosen = outcomes[first[job] : ends[job]] == ACCEPTED
            self.portions.append(self._portion(int(origins[job]), np.append(chosen, False)))
        return np.array([self._portion_number[key] for key in keys.tolist()])[which]

    def _portion(self, pool: int, chosen: np.ndarray) -> Portion:
        """The tokens of some outcomes of what a set comes from; what is last in `chosen` is none of them."""
        while pool > 0:
            pool, place = self._origins[pool]
            chosen = chosen[place]
        return Portion(-1 - pool, np.flatnonzero(chosen))

    def read(self, pools: np.ndarray, states: np.ndarray) -> Landing:
        """Where pools lead when the next state on the stack is known; `skip` 0 looks at it again."""
        steps = (
            self._first_step.values[pools] + self._outcomes.views.classes[self._view.values[pools], states]
        )
        unknown = np.flatnonzero(self._pool.values[steps] == UNKNOWN)
        if len(unknown):
            distinct, where, _ = numbered(steps[unknown])
            where = unknown[where]
            for piece in pieces(self._length.values[pools[where]], CHUNK):
                self._step(distinct[piece], pools[where[piece]], states[where[piece]])
        return Landing(self._accepted.values[steps], self._pool.values[steps], self._skip.values[steps])

    def _step(self, steps: np.ndarray, pools: np.ndarray, states: np.ndarray) -> None:
        length = self._length.values[pools]
        index = ranges(self._start.values[pools], length)
        outcomes = self._acceptance.read(self._members.values[index], np.repeat(states, length))
        found = self.land(outcomes, self._member_sums.values[index], length, pools)
        for column, values in zip((self._accepted, self._pool, self._skip), found, strict=True):
            column.values[steps] = values

    def _make(self, keys, jobs, outcomes, sums, length, origins) -> None:
        """Adds the pools of some of the sets; `REJECTED` stands for all that does not wait."""
        first = np.cumsum(length) - length
        index = ranges(first[jobs], length[jobs])
        outcomes, sums, length = outcomes[index], sums[index], length[jobs]
        waiting = np.flatnonzero(outcomes != REJECTED)
        owner = np.repeat(np.arange(len(jobs)), length)[waiting]
        bits = int(outcomes.max()).bit_length()
        pairs, _, which = numbered(owner << bits | outcomes[waiting])
        total = np.zeros(len(pairs), np.uint64)
        np.add.at(total, which, sums[waiting])
        pool_of, members = pairs >> bits, pairs & (1 << bits) - 1
        start = np.searchsorted(pool_of, np.arange(len(jobs) + 1))
        # Where each outcome of the origin has gone to; one more, of nothing, is last on both sides.
        place = np.full(len(outcomes) + len(jobs), -1, np.int32)
        place[waiting + owner] = which - start[owner]
        number = len(self)
        self._budget.step(len(jobs))
        if number + len(jobs) > self._budget.limits.walk_nodes:
            remedy = "split long rules, or use left recursion instead of right recursion"
            raise self._budget.exceeded("walk_nodes", f"{self._budget.work}: it needs", "nodes", remedy)
        self._number.update(zip(keys.tolist(), range(number, number + len(jobs)), strict=True))
        self._origins += zip(origins[jobs].tolist(), np.split(place, np.cumsum(length + 1)[:-1]), strict=True)
        self._start.extend(len(self._members) + start[:-1])
        self._length.extend(np.diff(start))
        self._members.extend(members)
        self._member_sums.extend(total)
        self._add_steps(self._joint_views(members, start))

    def _joint_views(self, members: np.ndarray, start: np.ndarray) -> np.ndarray:
        """How pools look at the next state, from their members, which begin at `start`."""
        looking = members & SKIP == 0
        own = np.where(looking, self._outcomes.views_of(members), 0)
        view = np.maximum.reduceat(own, start[:-1])
        other = looking & (own != np.repeat(view, np.diff(start)))
        for pool in np.flatnonzero(np.logical_or.reduceat(other, start[:-1])).tolist():
            some = np.unique(own[start[pool] : start[pool + 1]])
            view[pool] = self._outcomes.views.joined(some.tolist())
        return view

    def _add_steps(self, view: np.ndarray) -> None:
        sizes = self._outcomes.views.sizes[view]
        self._view.extend(view)
        self._first_step.extend(len(self._pool) + np.cumsum(sizes) - sizes)
        steps = int(sizes.sum())
        self._accepted.extend(np.zeros(steps))
        self._pool.extend(np.full(steps, UNKNOWN))
        self._skip.extend(np.zeros(steps))
