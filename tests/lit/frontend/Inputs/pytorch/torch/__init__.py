class version:
    hip = "6.4"


def find_version():
    return open("version").read()


__version__ = find_version()
