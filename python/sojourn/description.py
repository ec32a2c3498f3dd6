"""What a task is told: the values of its trial, and what its data look like."""

from collections.abc import Mapping


# What is read where there is no value; and under which name it is noted that all names were read.
NONE = object()
EVERY_NAME = object()


class Values(Mapping):
    """Named values, as attributes (`c.width`) and as a mapping (`c["width"]`, `dict(c)`)."""

    def __init__(self, what, values):
        """`what` is how the user calls it, for messages: `c` or `data`."""
        self.__dict__["_what"] = what
        self.__dict__["_values"] = dict(values)
        # What was asked for, by name; NONE for what isn't there.
        self.__dict__["reads"] = {}

    def __getattr__(self, name):
        try:
            return self._read(name)
        except KeyError as error:
            raise AttributeError(error.args[0]) from None

    def __setattr__(self, name, value):
        raise AttributeError(f"{self._what} can't be changed: {name!r} comes from the job")

    def __getitem__(self, name):
        return self._read(name)

    def __iter__(self):
        self._read_all()
        return iter(self._values)

    def __len__(self):
        self._read_all()
        return len(self._values)

    def __repr__(self):
        self._read_all()
        inside = ", ".join(f"{name}={value!r}" for name, value in self._values.items())
        return f"{self._what}({inside})"

    def _read(self, name):
        self.reads[name] = self._values.get(name, NONE)
        if name not in self._values:
            there = ", ".join(sorted(self._values)) or "nothing"
            raise KeyError(f"{self._what} has no {name!r}; it has {there}")
        return self._values[name]

    def _read_all(self):
        """Whoever asks for all names depends on each of them, and on there being no others."""
        self.reads.update({**self._values, EVERY_NAME: sorted(self._values)})

    def read_same(self, others):
        """Would whoever read these values have read the same from `others`, a dict? 1, 1.0 and True aren't the same."""
        others = {**others, EVERY_NAME: sorted(others)}
        return all(repr(value) == repr(others.get(name, NONE)) for name, value in self.reads.items())


class Named:
    """Things under names of the data, as attributes. It has no method, so that any name may be a column's."""

    def __init__(self, what, named):
        """`what` is how the user calls it, for messages: `data` or `batch`."""
        self.__dict__["_what"] = what
        self.__dict__.update(named)

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        there = ", ".join(sorted(key for key in {*self.__dict__, "rows"} if not key.startswith("_")))
        raise AttributeError(f"{self._what} has no {name!r}; it has {there}")


class Column:
    """A column of the data.

    `dtype` is a `torch.dtype`, `shape` that of a row in a batch, a tuple. Where all numbers are whole and at least 0, `values`
    is one more than the largest; None where that isn't known.
    """

    def __init__(self, dtype, shape, values=None):
        self.dtype = dtype
        self.shape = tuple(shape)
        self.values = values

    def __repr__(self):
        return f"Column({self.dtype}, {self.shape}, values={self.values})"
