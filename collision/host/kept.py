"""A cache bounded by bytes: meshes are of any size, so their number does not tell how much memory they take."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class Kept(Generic[T]):
    """A cache of the most recent objects, by key, up to a total size; larger objects are not stored.

    most: total size [bytes].
    weight: function that gives the size of an object [bytes].
    """

    def __init__(self, most: int, weight: Callable[[T], int]) -> None:
        self.most, self.weight, self.total = most, weight, 0
        self._things: dict[Hashable, tuple[T, int]] = {}
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        with self._lock:
            if key in self._things:
                self._things[key] = entry = self._things.pop(key)  # the last one again
                return entry[0]
        thing = make()
        weight = self.weight(thing)
        with self._lock:
            if weight <= self.most and key not in self._things:
                self._things[key] = thing, weight
                self.total += weight
            while self.total > self.most:
                self.total -= self._things.pop(next(iter(self._things)))[1]
        return thing

    def __len__(self) -> int:
        return len(self._things)
