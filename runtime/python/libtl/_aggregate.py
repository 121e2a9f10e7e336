"""Aggregates: classes whose instances are values in kernels, and here in Python."""

import inspect
import sys
from .language import core

__all__ = ["aggregate"]


def _is_aggregate(c):
    return getattr(c, "__triton_aggregate__", False)


def _hints(cls):
    """The annotations of a class's own fields; texts are resolved where Python can."""
    own = cls.__dict__.get("__annotations__", {})
    try:
        scope = dict(vars(sys.modules[cls.__module__]))
        import typing
        known = typing.get_type_hints(cls, scope, dict(vars(cls)))
    except (NameError, KeyError, TypeError, AttributeError):
        known = own
    return {name: known.get(name, a) for name, a in own.items()}


def _value(v):
    """A value as a field has it: compile-time values as tl.constexpr, tuples as tl.tuple."""
    if v is None or isinstance(v, (bool, int, float, str, core.dtype)):
        return core.constexpr(v)
    if isinstance(v, (tuple, list)):
        return core.tuple([_value(x) for x in v], type(v) if hasattr(v, "_fields") else None)
    return v


def _init(cls):
    """The constructor of a class without one: fields by position or name."""
    def __init__(self, *args, **kwargs):
        names = list(cls.__aggregate_fields__)
        if len(args) > len(names):
            raise TypeError(f"{cls.__name__}.__init__() takes {len(names) + 1} positional arguments but {len(args) + 1} "
                            "were given")
        given = dict(zip(names, args))
        for name, v in kwargs.items():
            if name not in names:
                raise TypeError(f"{cls.__name__}.__init__() got an unexpected keyword argument '{name}'")
            if name in given:
                raise TypeError(f"{cls.__name__}.__init__() got multiple values for argument '{name}'")
            given[name] = v
        for name in names:
            if name not in given and name not in cls.__aggregate_defaults__:
                raise TypeError(f"{cls.__name__}.__init__() missing required argument: '{name}'")
            setattr(self, name, _value(given.get(name, cls.__aggregate_defaults__.get(name))))
    return __init__


def _assign(self, name, value):
    fields, kind = type(self).__aggregate_fields__, type(self).__name__
    if name not in fields:
        raise AttributeError(f"{kind} has no attribute '{name}'")
    if isinstance(fields[name], type) and not isinstance(value, fields[name]):
        raise TypeError(f"Expected {fields[name]} for attribute '{name}', got {type(value)}")
    if self.__dict__.get("_complete"):
        raise AttributeError(f"cannot assign to field '{name}' on immutable aggregate {kind}; use aggregate_replace() to "
                             "construct a modified copy")
    object.__setattr__(self, name, value)


def aggregate(cls):
    """Makes a class whose instances are values in kernels: fields with annotations, methods under @jit. Instances do not
    change; tl.aggregate_replace copies. TypeError: a base class is not an aggregate."""
    fields, defaults = {}, {}
    for base in cls.__bases__:
        if base is not object and not _is_aggregate(base):
            raise TypeError(f"Aggregates can only inherit from other aggregates; {base.__name__} is none")
        fields.update(getattr(base, "__aggregate_fields__", {}))
        defaults.update(getattr(base, "__aggregate_defaults__", {}))
    own = _hints(cls)
    fields.update(own)
    for name in own:
        if name in cls.__dict__:
            defaults[name] = cls.__dict__[name]
    cls.__triton_aggregate__, cls.__aggregate_fields__, cls.__aggregate_defaults__ = True, fields, defaults
    init = cls.__dict__.get("__init__")
    if init is None:
        init = _init(cls)
    run = getattr(init, "fn", init)

    def __init__(self, *args, **kwargs):
        run(self, *args, **kwargs)
        missing = [n for n in fields if n not in self.__dict__]
        if missing:
            raise AttributeError(f"constructor for {cls.__name__} did not initialize attribute '{missing[0]}'")
        self.__dict__.update(_complete=True, _made=(args, kwargs))

    if inspect.isfunction(run):
        __init__.__wrapped__ = run
    cls.__init__, cls.__setattr__ = __init__, _assign
    return cls
