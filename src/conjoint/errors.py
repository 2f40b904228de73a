"""The errors that a user can mend."""


class ConjointError(Exception):
    """Something the user can act on; the command line prints it as one line and exits with status 2."""


class InputError(ConjointError, ValueError):
    """A bad argument, file or option. The message names what, the value found, and the remedy."""
