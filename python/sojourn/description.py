"""What a task is told: the values of its trial, and what its data look like."""

from collections.abc import Mapping


class Values(Mapping):
    """Named values, as attributes (`c.width`) and as a mapping (`c["width"]`, `dict(c)`)."""

    def __init__(self, what, values):
        """`what` is how the user calls it, for messages: `c` or `data`."""
        self.__dict__["_what"] = what
        self.__dict__["_values"] = dict(values)

    def __getattr__(self, name):
        try:
            return self.__dict__["_values"][name]
        except KeyError:
            raise AttributeError(self._lacks(name)) from None

    def __setattr__(self, name, value):
        raise AttributeError(f"{self._what} can't be changed: {name!r} comes from the job")

    def __getitem__(self, name):
        try:
            return self._values[name]
        except KeyError:
            raise KeyError(self._lacks(name)) from None

    def __iter__(self):
        return iter(self._values)

    def __len__(self):
        return len(self._values)

    def __repr__(self):
        inside = ", ".join(f"{name}={value!r}" for name, value in self._values.items())
        return f"{self._what}({inside})"

    def _lacks(self, name):
        there = ", ".join(sorted(self._values)) or "nothing"
        return f"{self._what} has no {name!r}; it has {there}"


class Column:
    """A column of the data: `dtype`, a `torch.dtype`, and `shape`, that of one row, a tuple."""

    def __init__(self, dtype, shape):
        self.dtype = dtype
        self.shape = tuple(shape)

    def __repr__(self):
        return f"Column({self.dtype}, {self.shape})"
