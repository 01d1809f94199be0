"""Calls on Dask arrays: the regions of a function as tasks of Dask's, on one machine or a cluster.

    call/devices/cluster_calls   a call with Dask arrays: stand-ins for them, its specialization, its result
    plan         what is made once of a specialization: the host part, its regions, their kernels
    host_walk    the host part, on the client; what depends on elements are lazy scalars
    host_ops/    its operations that are no parallel regions; products of matrices are in products
    region_tasks one region: a grid of blocks, a task for each, and how their results are joined
    grid         where a region's index space is cut, from the chunks of what it reads and writes
    stretches    blocks in stretches, most of which read a chunk where it is
    arrays       arrays of a call: chunks that keys stand for, and views of them
    graph        the tasks of a call, and Dask's collections of what comes out
    fusion       lines of tasks become one, as do those that give small values of one chunk
    answers      results of calls that tasks may have to leave to Python
    worker/      what runs on workers

Dask is imported when a call has Dask arrays, by this package alone.
"""
