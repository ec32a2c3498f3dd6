"""From a table to a model without editing a file, beside scikit-learn on the same rows.

Fourteen tables of the shapes that people have are made up by seed; with `--real` five small ones that come with scikit-learn are
dealt by it. Of each, `sojourn init` writes a job file for four fifths of the rows, the job is trained, and the best model predicts
the others. Logistic regression or ridge of scikit-learn, with standardised features and the same columns of words as indicators,
learns from the same rows.

    pip install scikit-learn pandas
    python3 examples/tables/compare.py --seeds 1,2,3      # --real; --only titanic,wine; --rows 2000

The last column is the difference of the errors of both (squared errors, or wrong classes) in its standard errors over the held-out
rows: above 2 scikit-learn is better, below -2 it is worse, between them the rows don't tell. A server and a client are started on
this machine, in a temporary folder. `sojourn` must be on the PATH.
"""

import argparse
import csv
import json
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def normal(rng, mean, deviation, digits=2):
    return f"{rng.gauss(mean, deviation):.{digits}f}"


def chance(rng, logit):
    return rng.random() < 1 / (1 + math.exp(-logit))


def titanic(rng, row):
    sex, pclass = rng.choice(["male", "female"]), rng.choice([1, 2, 3])
    age = "" if rng.random() < 0.2 else f"{max(1, rng.gauss(30, 14)):.0f}"
    fare = f"{rng.expovariate(pclass / 60):.2f}"
    young = 1 if age and int(age) < 12 else 0
    survived = chance(rng, 2.2 * (sex == "female") - 1.1 * (pclass - 2) - 1.2 + 1.5 * young)
    cabin = f"C{rng.randrange(300)}" if rng.random() < 0.25 else ""
    name = f"Doe, {'Mr.' if sex == 'male' else 'Mrs.'} {row}"
    return [row + 1, int(survived), pclass, name, sex, age, fare, cabin, rng.choice("CQS")]


def penguins(rng, row):
    kind = rng.randrange(3)
    island = rng.choice([["Biscoe", "Dream", "Torgersen"], ["Dream"], ["Biscoe"]][kind])
    missing = rng.random() < 0.02
    bill = "NA" if missing else normal(rng, [38.8, 48.8, 47.5][kind], 2.9, 1)
    depth = "NA" if missing else normal(rng, [18.3, 18.4, 15.0][kind], 1.1, 1)
    mass = "NA" if missing else f"{rng.gauss([3700, 3733, 5076][kind], 440):.0f}"
    sex = rng.choice(["male", "female", "NA"])
    return [row + 1, ["Adelie", "Chinstrap", "Gentoo"][kind], island, bill, depth, mass, sex, rng.choice([2007, 2008, 2009])]


def air(rng, row):
    hour, wind = rng.randrange(24), rng.choice(["NW", "cv", "NE", "SE"])
    temp, dew = rng.gauss(12, 12), rng.gauss(2, 14)
    dust = 90 + 2.2 * dew - 1.5 * temp + {"NW": -35, "cv": 30, "NE": -5, "SE": 20}[wind] + rng.gauss(0, 30)
    label = "NA" if rng.random() < 0.05 else f"{max(1, dust):.0f}"
    return [row + 1, rng.choice([2010, 2011, 2012]), 1 + rng.randrange(12), hour, label, f"{dew:.0f}", f"{temp:.0f}", wind]


def adult(rng, row):
    school, work = rng.choice(["Bachelors", "HS-grad", "11th", "Masters"]), rng.choice(["Private", "State-gov", "Self-emp", "?"])
    age, hours = 17 + rng.randrange(60), 20 + rng.randrange(50)
    rich = chance(rng, {"Bachelors": 0.6, "HS-grad": -0.9, "11th": -2, "Masters": 1.4}[school] + 0.05 * (hours - 45) + 0.03 * (age - 40) - 0.4)
    return [age, f" {work}", f" {10000 + rng.randrange(900000)}", f" {school}", f" {hours}", " >50K" if rich else " <=50K"]


def abalone(rng, row):
    length = rng.uniform(0.1, 0.8)
    sex = "I" if length < 0.35 or rng.random() < 0.15 else rng.choice("MF")
    shell = max(0.002, length**3 * 0.9 + rng.gauss(0, 0.02))
    rings = 3 + 9 * length + 14 * shell + rng.gauss(0, 1.6)
    return [sex, f"{length:.3f}", f"{length * 0.8 + rng.gauss(0, 0.01):.3f}", f"{length * 0.28 + rng.gauss(0, 0.01):.3f}", f"{shell:.4f}", max(1, round(rings))]


def wine(rng, row):
    kind = rng.randrange(3)
    centres = [(13.7, 2.0, 17, 106, 2.8, 3.0, 5.5, 1116), (12.3, 1.9, 20, 94, 2.3, 2.1, 3.1, 520), (13.2, 3.3, 21, 99, 1.7, 0.8, 7.4, 630)]
    return [kind + 1] + [normal(rng, centre, abs(centre) * 0.16) for centre in centres[kind]]


def sonar(rng, row):
    metal = rng.random() < 0.5
    wave = [min(0.9999, max(0, 0.3 + 0.12 * math.sin(n / 9 + (0.7 if metal else 0)) + rng.gauss(0, 0.12))) for n in range(60)]
    return [f"{value:.4f}" for value in wave] + ["M" if metal else "R"]


def covertype(rng, row):
    height, slope, soil = rng.gauss(2950, 280), abs(rng.gauss(14, 7)), rng.randrange(40)
    score = (height - 2950) / 140 + (soil - 20) / 15 + rng.gauss(0, 0.5)
    cover = min(7, max(1, round(4 + score)))
    soils = ["1" if kind == soil else "0" for kind in range(40)]
    return [f"{height:.0f}", rng.randrange(360), f"{slope:.0f}", rng.randrange(1400)] + soils + [cover]


def taxis(rng, row):
    km, hour = rng.expovariate(0.3) + 0.3, rng.randrange(24)
    zone = rng.choice(["Midtown", "Harlem, East", "JFK"])
    fare = 3 + 2.4 * km + (18 if zone == "JFK" else 0) + (2 if hour > 19 else 0) + rng.gauss(0, 1.5)
    return [f"t{row}", f"2019-03-{1 + rng.randrange(31):02} {hour:02}:{rng.randrange(60):02}:00", f"{km:.2f}", rng.choice(["True", "False"]), zone, f"{max(2.5, fare):.2f}"]


def diamonds(rng, row):
    carat = 0.2 + rng.expovariate(1.6)
    cut, color = rng.randrange(5), rng.randrange(7)
    price = 3400 * carat**1.5 * (1 + 0.05 * cut) * (1.18 - 0.05 * color) * math.exp(rng.gauss(0, 0.1))
    side = (carat * 163) ** (1 / 3)
    return [f"{carat:.2f}", ["Fair", "Good", "Very Good", "Premium", "Ideal"][cut], "DEFGHIJ"[color], normal(rng, 61.7, 1.4, 1), round(price)] + [f"{side + rng.gauss(0, 0.05):.2f}" for _ in range(2)]


def housing(rng, row):
    income, coast = max(0.5, rng.gauss(3.8, 1.8)), rng.choice(["NEAR BAY", "INLAND", "<1H OCEAN", "NEAR OCEAN"])
    rooms = "" if rng.random() < 0.03 else f"{max(1, rng.gauss(530, 400)):.1f}"
    value = 42000 * income + {"NEAR BAY": 70000, "INLAND": -60000, "<1H OCEAN": 45000, "NEAR OCEAN": 50000}[coast] + 40000 + rng.gauss(0, 55000)
    return [normal(rng, -119, 2), normal(rng, 35, 2), rooms, f"{income:.4f}", f"{min(500001, max(15000, value)):.1f}", coast]


def german(number, digits):
    whole, fraction = f"{abs(number):,.{digits}f}".split(".")
    return ("-" if number < 0 else "") + whole.replace(",", ".") + "," + fraction


def bank(rng, row):
    kind = rng.randrange(3)
    amount = -abs(rng.gauss([850, 45, 400][kind], [120, 25, 250][kind]))
    way = rng.choice([["Dauerauftrag"], ["Lastschrift", "Karte"], ["Karte", "Lastschrift"]][kind])
    return [f"{1 + rng.randrange(28):02}.{1 + rng.randrange(12):02}.2024", german(amount, 2), german(rng.uniform(1000, 90000), 2), way, ["Miete", "Essen", "Reise"][kind]]


def sales(rng, row):
    region, units = rng.choice(["North", "South", "West"]), 1 + rng.randrange(400)
    revenue = units * {"North": 42, "South": 37, "West": 55}[region] + 900 + rng.gauss(0, 900)
    return [region, units, f"{10 + rng.randrange(5)}", f"{max(100, revenue):,.2f}"]


def glass(rng, row):
    kind = rng.randrange(3)
    return [normal(rng, [1.518, 1.517, 1.523][kind], 0.002, 5), normal(rng, [13.2, 13.1, 14.4][kind], 0.5), normal(rng, [3.5, 3.0, 0.6][kind], 0.7), normal(rng, [1.2, 1.4, 2.1][kind], 0.3), ["window", "car", "lamp"][kind]]


# Each: rows, separator, header or none, the label (a position where there is no header), are labels numbers?
TABLES = {
    "titanic": (titanic, 891, ",", "PassengerId,Survived,Pclass,Name,Sex,Age,Fare,Cabin,Embarked", "Survived", False),
    "penguins": (penguins, 344, ",", ",species,island,bill_length_mm,bill_depth_mm,body_mass_g,sex,year", "species", False),
    "air": (air, 4000, ",", "No,year,month,hour,pm2.5,DEWP,TEMP,cbwd", "pm2.5", True),
    "adult": (adult, 6000, ",", "", "6", False),
    "abalone": (abalone, 4177, ",", "", "6", True),
    "wine": (wine, 178, ",", "", "1", False),
    "sonar": (sonar, 208, ",", "", "61", False),
    "covertype": (covertype, 8000, ",", "", "45", False),
    "taxis": (taxis, 6000, ",", "id,pickup_datetime,distance,is_card,zone,fare", "fare", True),
    "diamonds": (diamonds, 8000, ",", "carat,cut,color,depth,price,x,y", "price", True),
    "housing": (housing, 8000, ",", "longitude,latitude,total_bedrooms,median_income,median_house_value,ocean_proximity", "median_house_value", True),
    "bank": (bank, 1500, ";", "Buchungstag;Betrag;Saldo;Art;Kategorie", "Kategorie", False),
    "sales": (sales, 1200, ",", "Region,Units,Cost,Revenue", "Revenue", True),
    "glass": (glass, 214, ",", "", "5", False),
}


def real():
    """Tables that come with scikit-learn, as entries of TABLES whose rows are there already."""
    from sklearn import datasets

    tables = {}
    for name in ["iris", "wine", "breast_cancer", "digits", "diabetes"]:
        x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        rows = [[f"{value:.9g}" for value in features] + [int(label)] for features, label in zip(x, y)]
        header = ",".join([f"x{column}" for column in range(x.shape[1])] + ["target"])
        tables[f"real {name}"] = (rows, len(rows), ",", header, "target", name == "diabetes")
    return tables


def write(path, header, separator, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        if header:
            file.write(header + "\n")
        csv.writer(file, delimiter=separator, lineterminator="\n").writerows(rows)


def sojourn(*arguments, cwd):
    done = subprocess.run(["sojourn", *arguments], cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"sojourn {' '.join(arguments)}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def ours(folder, name, label, numbers):
    """The predictions of the best model for the rows that were kept apart, and the seconds of the search."""
    sojourn("init", "train.csv", "--label", label, "--name", name, cwd=folder)
    begun = time.monotonic()
    job = json.loads(sojourn("submit", "job.toml", "--wait", "--json", cwd=folder))["job"]
    seconds = time.monotonic() - begun
    sojourn("export", str(job), "--best", "-o", "best.safetensors", cwd=folder)
    sojourn("predict", "best.safetensors", "test.csv", "-o", "predicted.csv", cwd=folder)
    with (folder / "predicted.csv").open(newline="", encoding="utf-8") as file:
        predicted = [row["prediction"] for row in csv.DictReader(file)]
    return [float(value) for value in predicted] if numbers else predicted, seconds


def theirs(folder, separator, header, label, numbers):
    """The predictions of scikit-learn for the same rows, and the labels; those without one are missing in both."""
    import pandas as pd
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    style = {"sep": separator, "skipinitialspace": True, "header": 0 if header else None}
    if separator == ";":
        style |= {"decimal": ",", "thousands": "."}
    else:
        style |= {"thousands": ","}
    style |= {"na_values": ["?"]}
    train, test = (pd.read_csv(folder / name, **style) for name in ("train.csv", "test.csv"))
    if not header:
        for table in (train, test):
            table.columns = [str(position + 1) for position in table.columns]
    column = label
    train = train.dropna(subset=[column])
    x, y = train.drop(columns=[column]), train[column]
    words = [name for name in x if not pd.api.types.is_numeric_dtype(x[name]) and x[name].nunique() <= 64]
    # Numbers of rows teach nothing.
    counts = [name for name in x if pd.api.types.is_integer_dtype(x[name]) and x[name].nunique() == len(x) > 1000]
    plain = [name for name in x if pd.api.types.is_numeric_dtype(x[name]) and name not in counts]
    made = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), plain),
        (OneHotEncoder(handle_unknown="ignore"), words),
    )
    model = make_pipeline(made, Ridge() if numbers else LogisticRegression(max_iter=1000))
    model.fit(x, y)
    predicted, labels = list(model.predict(test.drop(columns=[column]))), list(test[column])
    if numbers:
        return predicted, labels
    return [str(value).strip() for value in predicted], [str(value).strip() for value in labels]


def compared(mine, others, labels, numbers):
    """The measure of both (RMSE or accuracy), and the difference of their errors in standard errors."""
    known = [row for row, label in enumerate(labels) if label == label]
    if numbers:
        errors = [[(predicted[row] - labels[row]) ** 2 for row in known] for predicted in (mine, others)]
        measures = [math.sqrt(sum(all_of) / len(all_of)) for all_of in errors]
    else:
        errors = [[float(predicted[row] != labels[row]) for row in known] for predicted in (mine, others)]
        measures = [1 - sum(all_of) / len(all_of) for all_of in errors]
    differences = [a - b for a, b in zip(*errors)]
    mean = sum(differences) / len(differences)
    variance = sum((difference - mean) ** 2 for difference in differences) / max(1, len(differences) - 1)
    error = math.sqrt(variance / len(differences))
    return measures[0], measures[1], mean / error if error > 0 else 0.0


def compare(root, name, table, seed, most):
    """Makes one table, lets both learn, and prints a line; whether ours is at least as good, and the standard errors between them."""
    make, count, separator, header, label, numbers = table
    count = min(count, most or count)
    rng = random.Random(f"{name} {seed}")
    if callable(make):
        rows = [make(rng, row) for row in range(count)]
    else:
        rows = rng.sample(make, count)
    folder = root / f"{name} {seed}"
    folder.mkdir()
    cut = count * 4 // 5
    write(folder / "train.csv", header, separator, rows[:cut])
    write(folder / "test.csv", header, separator, rows[cut:])
    mine, seconds = ours(folder, name, label, numbers)
    others, labels = theirs(folder, separator, header, label, numbers)
    a, b, errors = compared(mine, others, labels, numbers)
    as_good = a <= b * 1.000001 if numbers else a >= b - 1e-9
    measure, sign = "rmse" if numbers else "accuracy", "+" if as_good else "-"
    print(f"{name:<18} {seed:>4} {count:>6}  {measure:<8} {a:>10.4f} {b:>10.4f} {sign} {errors:>6.1f}  {seconds:>4.0f} s", flush=True)
    return as_good, errors


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="1", help="by which rows are made up and dealt: 1,2,3")
    parser.add_argument("--only", help="some of the tables, by name")
    parser.add_argument("--rows", type=int, help="at most so many rows of each")
    parser.add_argument("--real", action="store_true", help="tables that come with scikit-learn")
    arguments = parser.parse_args()
    tables = real() if arguments.real else TABLES
    chosen = arguments.only.split(",") if arguments.only else list(tables)
    with tempfile.TemporaryDirectory() as root:
        root = Path(root)
        serve = subprocess.Popen(["sojourn", "serve", "--listen", "127.0.0.1:0", "--data", "server"], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        address = serve.stdout.readline().split()[-1]
        token = ["--server", address, "--token-file", str(root / "server" / "enrol-token")]
        client = subprocess.Popen(["sojourn", "client", *token, "--data", "client", "--metadata", "none"], cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.environ |= {"SOJOURN_SERVER": address, "SOJOURN_TOKEN_FILE": str(root / "server" / "admin-token")}
        try:
            print(f"{'table':<18} seed {'rows':>6}  {'measure':<8} {'sojourn':>10} {'sklearn':>10}   {'errors':>6}  search")
            for seed in arguments.seeds.split(","):
                results = [compare(root, name, tables[name], seed, arguments.rows) for name in chosen]
                good = sum(as_good for as_good, _ in results)
                worse = sum(errors > 2 for _, errors in results)
                better = sum(errors < -2 for _, errors in results)
                print(f"seed {seed}: at least as good in {good} of {len(chosen)}; by more than two standard errors better in {better}, worse in {worse}", flush=True)
        finally:
            for process in (client, serve):
                process.send_signal(signal.SIGINT)
                process.wait()


if __name__ == "__main__":
    main()
