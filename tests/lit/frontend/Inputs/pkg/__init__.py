from .helpers import scaled as rescaled
from .sub import *
