from ..helpers import FACTOR
from .deep import negative
