"""Streams, events, graphs."""

from __future__ import annotations

import ctypes
import time

from tests.driver.machine import Code, Event, Graph, Kept, Point, Status, Stream, call, machine, put, put_handle


@call("pui")
def cuStreamCreateWithPriority(place: int, flags: int, priority: int) -> None:
    stream = Stream(machine.current())
    stream.context.streams.append(stream)
    put_handle(place, machine.keep(stream))


@call("pp")
def cuCtxGetStreamPriorityRange(least: int, greatest: int) -> None:
    put(least, ctypes.c_int, 0)
    put(greatest, ctypes.c_int, -5)


@call("p")
def cuStreamDestroy(handle: int) -> None:
    machine.handles.pop(handle, None)  # what it has been asked for is done nevertheless


@call("pp")
def cuStreamGetCtx(handle: int, place: int) -> None:
    put_handle(place, machine.handles[handle].context.handle)


@call("pp")
def cuStreamGetDevice(handle: int, place: int) -> None:
    put(place, ctypes.c_int, machine.handles[handle].context.number)


@call("p")
def cuStreamSynchronize(handle: int) -> None:
    stream = machine.stream(handle)
    if stream.graph is not None:
        raise Status(Code.STREAM_CAPTURE_UNSUPPORTED)
    stream.run()


@call("pu")
def cuEventCreate(place: int, flags: int) -> None:
    put_handle(place, machine.keep(Event(machine.current(), not flags & 2)))


@call("p")
def cuEventDestroy(handle: int) -> None:
    del machine.handles[handle]


@call("pp")
def cuEventRecord(handle: int, on: int) -> None:
    stream, event = machine.stream(on), machine.handles[handle]
    if event.context is not stream.context:
        raise Status(Code.INVALID_HANDLE)
    point = Point(stream)
    stream.add(lambda: setattr(point, "time", time.perf_counter()))
    event.point = point


@call("ppu")
def cuStreamWaitEvent(on: int, handle: int, flags: int) -> None:
    stream, point = machine.stream(on), machine.handles[handle].point
    if point is not None:
        stream.add(point)


def reached(handle: int) -> Point | None:
    machine.current()
    found: Point | None = machine.handles[handle].point
    return found


@call("p")
def cuEventSynchronize(handle: int) -> None:
    point = reached(handle)
    if point is not None:
        point.stream.run(point)


@call("p")
def cuEventQuery(handle: int) -> None:
    point = reached(handle)
    if point is not None and not point.time:
        raise Status(Code.NOT_READY)


@call("ppp")
def cuEventElapsedTime(place: int, start: int, end: int) -> None:
    first, last = reached(start), reached(end)
    if first is None or last is None or not (machine.handles[start].timed and machine.handles[end].timed):
        raise Status(Code.INVALID_HANDLE)
    if not first.time or not last.time:
        raise Status(Code.NOT_READY)
    put(place, ctypes.c_float, (last.time - first.time) * 1e3)


@call("pi")
def cuStreamBeginCapture(handle: int, mode: int) -> None:
    stream = machine.stream(handle)
    if stream.graph is not None:
        raise Status(Code.STREAM_CAPTURE_UNSUPPORTED)
    stream.graph = Graph([], [])
    machine.keep(stream.graph)


@call("pp")
def cuStreamIsCapturing(handle: int, place: int) -> None:
    put(place, ctypes.c_int, int(machine.handles[handle].graph is not None))


@call("ppppppp")
def cuStreamGetCaptureInfo(handle: int, status: int, number: int | None, graph: int | None, *more: int | None) -> None:
    found = machine.stream(handle).graph
    put(status, ctypes.c_int, int(found is not None))
    if found is not None:
        for place in (number, graph):
            if place is not None:
                put_handle(place, machine.handle(found))


@call("pp")
def cuStreamEndCapture(handle: int, place: int) -> None:
    stream = machine.stream(handle)
    graph, stream.graph = stream.graph, None
    if graph is None:
        raise Status(Code.INVALID_VALUE)
    put_handle(place, machine.handle(graph))


@call("ppu")
def cuGraphInstantiateWithParams(place: int, handle: int, parameters: int) -> None:
    graph = machine.handles[handle]
    for one in graph.kept:
        one.count += 1
    put_handle(place, machine.keep(Graph([*graph.works], [*graph.kept])))


@call("ppQ")
def cuGraphInstantiate(place: int, handle: int, flags: int) -> None:
    cuGraphInstantiateWithParams(place, handle, 0)


@call("p")
def cuGraphDestroy(handle: int) -> None:
    machine.handles.pop(handle).close()


@call("p")
def cuGraphExecDestroy(handle: int) -> None:
    machine.handles.pop(handle).close()


@call("pppuu")
def cuUserObjectCreate(place: int, what: int, destroy: int, count: int, flags: int) -> None:
    put_handle(place, machine.keep(Kept(what, ctypes.CFUNCTYPE(None, ctypes.c_void_p)(destroy), count)))


@call("pu")
def cuUserObjectRelease(handle: int, count: int) -> None:
    machine.handles[handle].release(count)


@call("ppuu")
def cuGraphRetainUserObject(graph: int, handle: int, count: int, flags: int) -> None:
    kept = machine.handles[handle]
    if not flags & 1:  # otherwise the caller's own references go to the graph
        kept.count += count
    machine.handles[graph].kept += [kept] * count


@call("ppu")
def cuGraphReleaseUserObject(graph: int, handle: int, count: int) -> None:
    kept = machine.handles[handle]
    for _ in range(count):
        machine.handles[graph].kept.remove(kept)
    kept.release(count)


@call("pp")
def cuGraphUpload(graph: int, handle: int) -> None:
    pass


@call("pp")
def cuGraphLaunch(graph: int, handle: int) -> None:
    stream = machine.stream(handle)
    machine.graphs_launched += 1
    for work in machine.handles[graph].works:
        stream.add(work)
