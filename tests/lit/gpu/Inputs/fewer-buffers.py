import os

import triton

if os.environ.get("TEST_UNSCALED", "0") == "1":

    @triton.jit
    def scale(x):
        return x

else:

    @triton.jit
    def scale(x):
        return x * 0.5
