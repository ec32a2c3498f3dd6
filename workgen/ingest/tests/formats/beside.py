"""Prints tables that are changed by chance, and what other readers make of each: Python's csv, pandas and polars.

    beside.py SEED COUNT

A line of JSON for each table: its text, its separator, the names of its changes, and for each reader the columns `a`, `b` and `y`, or null
where it refuses the table or finds words in `a` or `b`. A missing value is null.
"""

import csv
import io
import json
import math
import random
import sys
import warnings

import pandas
import polars

MISSING = ["", "NA", "N/A", "n/a", "na", "NaN", "nan", "NAN", "null", "NULL", "Null", "?", "None", "none", "NONE"]

# Spellings of numbers and of what is none, each under the name of its kind.
FIELDS = {
    "missing": MISSING,
    "exponent": ["1e3", "1E-3", "-2.5e+1", "1e+02", "3e0", "1e5"],
    "sign": ["+5", "+0.5", "-0", "-0.0", "+1e2", "- 5", "--5", "+-5"],
    "point": [".5", "5.", "-.25", "-7.", ".", "-.", "1.2.3", "..5"],
    "zeros": ["007", "-0012", "00.50", "1.500000000000000000000", "0000"],
    "digits": ["0.1234567890123456789", "12345678901234567890", "9007199254740993", "1e-320", "0.30000000000000004"],
    "large": ["1e400", "-1e400", "3.5e38", "1e39"],
    "infinite": ["inf", "-inf", "Infinity", "+Infinity", "INF"],
    "other notation": ["1,5", "1.234,5", "1 000", "1'000", "1_000", "$5", "5%", "1\u00a0000"],
    "other base": ["0x10", "0b11", "0o17", "1e", "e5", "1d3", "1f", "1L"],
    "truth": ["True", "false", "TRUE", "yes", "t"],
    "word": ["x", "five", "a b", "\u0665", "\uff11", "\u00bd", "1st"],
    "blanks": [" 5", "5 ", " 5 ", "\t5", "5\t", " ", "  ", "\u00a05"],
    "date": ["2024-03-31", "12:30", "31/12/2024"],
}


def rows(rng):
    return [[f"{rng.uniform(-9, 9):.{rng.randrange(5)}f}", str(rng.randrange(-50, 50)), rng.choice("uvw")] for _ in range(rng.randrange(4, 9))]


def field(kind):
    def change(rng, table, text):
        table[rng.randrange(len(table))][rng.randrange(2)] = rng.choice(FIELDS[kind])
        return text

    return change


def column(kind):
    """Every field of a column, so that its type is another."""

    def change(rng, table, text):
        at = rng.randrange(2)
        for row in table:
            row[at] = rng.choice(FIELDS[kind])
        return text

    return change


def label(values):
    def change(rng, table, text):
        table[rng.randrange(len(table))][2] = rng.choice(values)
        return text

    return change


def some_row(change):
    def changed(rng, table, text):
        change(table, rng.randrange(len(table)))
        return text

    return changed


def on_text(change):
    return lambda rng, table, text: lambda lines: change(rng, lines)


def at_line(change):
    def changed(rng, lines):
        at = rng.randrange(len(lines))
        lines[at] = change(rng, lines[at])
        return lines

    return on_text(changed)


def insert(line):
    def changed(rng, lines):
        lines.insert(rng.randrange(1, len(lines) + 1), line)
        return lines

    return on_text(changed)


def quote_somewhere(rng, line):
    at = rng.randrange(len(line) + 1)
    return line[:at] + '"' + line[at:]


CHANGES = {
    **{f"field: {kind}": field(kind) for kind in FIELDS},
    **{f"column: {kind}": column(kind) for kind in FIELDS},
    "label: quoted": label(['"a,b"', '"a;b"', '"a\tb"', '"say ""hi"""', '""""', '"a"']),
    "label: line break": label(['"a\nb"', '"a\n\nb"', '"\na"']),
    "label: blanks": label([" u", "u ", '" u "', '" u"']),
    "label: unicode": label(["\u00e4", "\u65e5\u672c", "\U0001f600", "e\u0301", "\u200b"]),
    "label: quote inside": label(['a"b', 'a""b', 'ab"']),
    "label: behind a quote": label(['"a"b', '"a" ', '"a""b']),
    "label: blank before a quote": label([' "a"', ' "a,b"']),
    "label: missing": label(MISSING),
    "row: a field more": some_row(lambda table, at: table[at].append("1")),
    "row: a field fewer": some_row(lambda table, at: table[at].pop()),
    "row: an empty field more": some_row(lambda table, at: table[at].append("")),
    "rows: an empty field more": lambda rng, table, text: [row.append("") for row in table] and text,
    "line: empty": insert(""),
    "line: blanks": insert("  "),
    "line: separators alone": insert(",,"),
    "line: the header again": insert("a,b,y"),
    "line: comment": insert("# a comment"),
    "line: a stray quote": at_line(quote_somewhere),
    "line: blanks behind": at_line(lambda rng, line: line + "  "),
    "line: a carriage return more": at_line(lambda rng, line: line + "\r"),
    "line: a NUL": at_line(lambda rng, line: line[:1] + "\0" + line[1:]),
    "header: quoted": on_text(lambda rng, lines: ['"a","b","y"', *lines[1:]]),
    "header: blanks": on_text(lambda rng, lines: ["a, b, y", *lines[1:]]),
    "header: a name twice": on_text(lambda rng, lines: ["a,b,b,y", *(line.replace(",", ",1,", 1) for line in lines[1:])]),
    "header: unnamed first": on_text(lambda rng, lines: [",a,b,y", *(f"{n},{line}" for n, line in enumerate(lines[1:]))]),
    "header: other order": on_text(lambda rng, lines: ["b,a,y", *lines[1:]]),
}


def made(rng):
    table, text = rows(rng), None
    names = [rng.choice(sorted(CHANGES))]
    # Two changes of a table's form would be a third one.
    if rng.random() < 0.3:
        kinds = ["label: "] if names[0].startswith("column: ") else ["label: ", "field: "]
        more = [name for name in sorted(CHANGES) if name != names[0] and name.startswith(tuple(kinds))]
        names.append(rng.choice(more))
    later = []
    # Rows of another width come last: others look for their fields by position.
    for name in sorted(names, key=lambda name: name.startswith("row")):
        done = CHANGES[name](rng, table, text)
        if callable(done):
            later.append(done)
    lines = ["a,b,y", *(",".join(row) for row in table)]
    for change in later:
        lines = change(lines)
    separator = rng.choice([",", ",", ";", "\t"])
    if separator != "," and not any("quoted" in name or "notation" in name for name in names):
        lines = [line.replace(",", separator) for line in lines]
    else:
        separator = ","
    end = rng.choice(["\n", "\n", "\r\n"])
    text = end.join(lines) + rng.choice([end, end, ""])
    return rng.choice(["", "", "", "\ufeff"]) + text, separator, names


def number(text):
    text = text.strip()
    if text in MISSING:
        return None
    if "_" in text:  # Python's own notation in source text
        raise ValueError(text)
    return float(text)


def by_csv(text, separator):
    found = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), delimiter=separator, strict=True)
    found = [row for row in found if len(row) > 1 or "".join(row).strip(" ")]
    names = [name.strip() for name in found[0]]
    if any(names.count(name) != 1 for name in "aby") or any(len(row) != len(names) for row in found):
        raise ValueError("another shape")
    columns = {name: [row[at] for row in found[1:]] for at, name in enumerate(names)}
    return {"a": [number(of) for of in columns["a"]], "b": [number(of) for of in columns["b"]], "y": [None if of.strip() in MISSING else of for of in columns["y"]]}


def by_pandas(text, separator):
    table = pandas.read_csv(io.BytesIO(text.encode()), sep=separator, na_values=MISSING, index_col=False, encoding="utf-8-sig")
    table.columns = [name.strip() for name in table.columns]
    for name in "ab":
        if not pandas.api.types.is_numeric_dtype(table[name]):
            raise ValueError("words")
    return {name: [None if pandas.isna(of) else float(of) for of in table[name]] for name in "ab"} | {"y": [None if pandas.isna(of) else str(of) for of in table["y"]]}


def by_polars(text, separator):
    table = polars.read_csv(io.BytesIO(text.encode()), separator=separator, null_values=MISSING, infer_schema_length=None)
    table = table.rename({name: name.strip() for name in table.columns})
    for name in "ab":
        if not (table[name].dtype.is_numeric() or table[name].dtype in (polars.Boolean, polars.Null)):
            raise ValueError("words")
    numbers = {name: [None if of is None else float(of) for of in table[name].to_list()] for name in "ab"}
    return numbers | {"y": [None if of is None else str(of) for of in table["y"].to_list()]}


def finite(columns):
    """Infinite numbers as words: JSON has none."""
    return {name: [str(of) if isinstance(of, float) and not math.isfinite(of) else of for of in values] for name, values in columns.items()}


def main():
    warnings.simplefilter("ignore")
    rng = random.Random(int(sys.argv[1]))
    for _ in range(int(sys.argv[2])):
        text, separator, names = made(rng)
        line = {"text": text, "separator": separator, "changes": names}
        for name, read in (("csv", by_csv), ("pandas", by_pandas), ("polars", by_polars)):
            try:
                line[name] = finite(read(text, separator))
            except Exception:  # each has its own kinds of refusal
                line[name] = None
        print(json.dumps(line))


main()
