"""Triton's files on disk, for programs that keep files there: triton.runtime.cache. Kernels of libtl are not among them."""

import os

from . import knobs

__all__ = ["CacheManager", "FileCacheManager", "RemoteCacheBackend", "RemoteCacheManager", "get_cache_manager",
           "get_dump_manager", "get_override_manager", "default_cache_dir"]


class CacheManager:
    """Files under a key."""

    def get_file(self, filename):
        """The path of a file, or None."""
        raise NotImplementedError

    def put(self, data, filename, binary=True):
        """Writes a file, of bytes or text. Its path."""
        raise NotImplementedError

    def get_group(self, filename):
        """The paths of a group's files by name; None: there is no group, or one of its files is missing."""
        raise NotImplementedError

    def put_group(self, filename, group):
        """Notes a group of files, paths by name."""
        raise NotImplementedError


class FileCacheManager(CacheManager):
    """A folder below knobs.cache.dir."""

    def __init__(self, key, override=False, dump=False):
        top = knobs.cache.override_dir if override else knobs.cache.dump_dir if dump else knobs.cache.dir
        if not top:
            raise RuntimeError("there is no folder for files: set TRITON_CACHE_DIR")
        self.key, self.cache_dir = key, os.path.join(top, key)
        if not override:
            os.makedirs(self.cache_dir, exist_ok=True)

    def _path(self, filename):
        return os.path.join(self.cache_dir, filename)

    def has_file(self, filename):
        return os.path.exists(self._path(filename))

    def get_file(self, filename):
        return self._path(filename) if self.has_file(filename) else None

    def put(self, data, filename, binary=True):
        import tempfile
        data = data if isinstance(data, bytes) else str(data).encode()
        fd, temporary = tempfile.mkstemp(prefix=".", dir=self.cache_dir)
        with os.fdopen(fd, "wb") as f:
            f.write(data)
        os.replace(temporary, self._path(filename))  # readers see all of the file or nothing
        return self._path(filename)

    def get_group(self, filename):
        import json
        try:
            with open(self._path("__grp__" + filename), encoding="utf-8") as f:
                paths = json.load(f)["child_paths"]
        except (OSError, ValueError, KeyError):
            return None
        return paths if all(map(os.path.exists, paths.values())) else None

    def put_group(self, filename, group):
        import json
        return self.put(json.dumps({"child_paths": group}), "__grp__" + filename)


class RemoteCacheBackend:
    """A store of bytes by name, for RemoteCacheManager: a class that programs derive from."""

    def __init__(self, key):
        self.key = key

    def get(self, filenames):
        """The contents of those files that there are, by name."""
        raise NotImplementedError

    def put(self, filename, data):
        raise NotImplementedError


class RemoteCacheManager(CacheManager):
    """Files in the store that knobs.cache.remote_manager_class names, with copies in a folder."""

    def __init__(self, key, override=False, dump=False):
        if knobs.cache.remote_manager_class is None:
            raise RuntimeError("knobs.cache.remote_manager_class is not set")
        self._backend, self._folder = knobs.cache.remote_manager_class(key), FileCacheManager(key, override, dump)

    def _fetch(self, names):
        return {n: self._folder.put(data, n) for n, data in self._backend.get(list(names)).items()}

    def get_file(self, filename):
        return self._fetch([filename]).get(filename)

    def put(self, data, filename, binary=True):
        self._backend.put(filename, data if isinstance(data, bytes) else str(data).encode())
        return filename

    def get_group(self, filename):
        import json
        path = self.get_file("__grp__" + filename)
        if path is None:
            return None
        with open(path, encoding="utf-8") as f:
            names = json.load(f)
        paths = self._fetch(names)
        return paths if len(paths) == len(names) else None

    def put_group(self, filename, group):
        import json
        return self.put(json.dumps(sorted(group)), "__grp__" + filename)


def _manager(key, **kind):
    return (knobs.cache.manager_class or FileCacheManager)(key, **kind)


def get_cache_manager(key):
    """The files under a key, a hexadecimal number."""
    return _manager(key)


def get_override_manager(key):
    return _manager(key, override=True)


def get_dump_manager(key):
    return _manager(key, dump=True)


def default_cache_dir():
    return knobs.cache.dir
