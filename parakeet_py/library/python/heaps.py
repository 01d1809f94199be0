"""Lists kept in order: `heapq`'s heaps and `bisect`'s sorted lists, step by step as the standard library has them.

The lists are those that a function changes (`typed_ir.grown_lists`): their items are read and assigned in place.
"""

from __future__ import annotations

from parakeet_py.library.registry import helper


@helper
def heap_up(heap, start, place):
    """Move an item towards the root, not beyond `start`."""
    item = heap[place]
    while place > start:
        parent = (place - 1) >> 1
        if not (item < heap[parent]):
            break
        heap[place] = heap[parent]
        place = parent
    heap[place] = item


@helper
def heap_down(heap, place):
    """Move an item down to a leaf, the smaller child up each time, and from there up to where it belongs."""
    end = len(heap)
    start = place
    item = heap[place]
    child = 2 * place + 1
    while child < end:
        right = child + 1
        if right < end and not (heap[child] < heap[right]):
            child = right
        heap[place] = heap[child]
        place = child
        child = 2 * place + 1
    heap[place] = item
    heap_up(heap, start, place)


@helper
def heap_all(heap):
    place = len(heap) // 2 - 1
    while place >= 0:
        heap_down(heap, place)
        place = place - 1


@helper
def sorted_place_left(items, item, low, high):
    while low < high:
        middle = (low + high) // 2
        if items[middle] < item:
            low = middle + 1
        else:
            high = middle
    return low


@helper
def sorted_place_right(items, item, low, high):
    while low < high:
        middle = (low + high) // 2
        if item < items[middle]:
            high = middle
        else:
            low = middle + 1
    return low
