"""npy.py CHECKPOINT FOLDER: are the .npy files in the folder the checkpoint's tensors, and all of them? By NumPy where it is installed."""
import ast
import json
import os
import struct
import sys


def read(path):
    """The shape and the bytes of a file in NumPy's format."""
    with open(path, "rb") as f:
        assert f.read(8) == b"\x93NUMPY\1\0"
        size, = struct.unpack("<H", f.read(2))
        assert (10 + size) % 64 == 0
        header = ast.literal_eval(f.read(size).decode())
        assert header["descr"] == "<f4" and header["fortran_order"] is False
        return header["shape"], f.read()


checkpoint, folder = sys.argv[1:]
with open(checkpoint, "rb") as f:
    size, = struct.unpack("<Q", f.read(8))
    tensors, data = json.loads(f.read(size)), f.read()
names = [n for n in tensors if n != "__metadata__" and not n.startswith("optimizer")]
assert sorted(os.listdir(folder)) == sorted(f"{n}.npy" for n in names)
for name in names:
    begin, end = tensors[name]["data_offsets"]
    path = f"{folder}/{name}.npy"
    assert read(path) == (tuple(tensors[name]["shape"]), data[begin:end]), name
    try:
        import numpy
    except ImportError:
        continue
    x = numpy.load(path)
    assert x.dtype == numpy.float32 and x.tobytes() == data[begin:end], name
