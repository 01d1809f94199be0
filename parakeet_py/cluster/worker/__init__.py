"""What runs on workers: machine code of parts of regions, buffers that hold boxes of arrays, tasks, scalars."""
