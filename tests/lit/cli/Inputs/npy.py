"""npy.py write PATH DESCR VALUE...: a .npy file of one dimension. npy.py read PATH: its description and values."""
import ast
import struct
import sys

FORMATS = {"<f4": "f", "<f8": "d", "<i4": "i", "<i8": "q", "<u2": "H", "|u1": "B", "|b1": "?"}

command, path = sys.argv[1:3]
if command == "write":
    descr, values = sys.argv[3], [ast.literal_eval(v) for v in sys.argv[4:]]
    header = "{'descr': '%s', 'fortran_order': False, 'shape': (%d,), }" % (descr, len(values))
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        f.write(struct.pack("<%d%s" % (len(values), FORMATS[descr]), *values))
else:
    data = open(path, "rb").read()
    assert data[:8] == b"\x93NUMPY\x01\x00", data[:8]
    (length,) = struct.unpack("<H", data[8:10])
    header = ast.literal_eval(data[10:10 + length].decode())
    body = data[10 + length:]
    form = FORMATS[header["descr"]]
    count = len(body) // struct.calcsize("<" + form)
    print(header["descr"], header["shape"], *struct.unpack("<%d%s" % (count, form), body))
