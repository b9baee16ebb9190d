# SPDX-License-Identifier: BSD-3-Clause
"""What the benches share.

Absolute figures drift from minute to minute on any machine, so whatever is
compared is measured in one run, in turn: every contender once a round, the
order rotated by one from round to round.  A figure is the median of the
rounds.

    with Workplace () as place:
        place.start ("nbdkit", ["nbdkit", ..., "-P", place.path ("p")], "p")
        values = in_turn (5, {"nbdkit": lambda: seconds_of (...), ...})

A bench never fails because a target was missed, only if something could
not be measured.
"""

import argparse
import datetime
import json
import os
import platform
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

MIB = 1 << 20


def die(text):
    sys.exit(f"{os.path.basename(sys.argv[0])}: {text}")


def run(command):
    """Run to the end; its standard output."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        die(f"{' '.join(command)}: exit status {done.returncode}\n"
            f"{done.stderr}{done.stdout}")
    return done.stdout


def seconds_of(command):
    start = time.monotonic()
    run(command)
    return time.monotonic() - start


class Workplace:
    """A directory, and the servers that live in it; both end with it."""

    def __enter__(self):
        self.dir = tempfile.mkdtemp(prefix="bp-bench.")
        self.processes = {}
        return self

    def __exit__(self, *_):
        for name in list(self.processes):
            self.stop(name)
        shutil.rmtree(self.dir)

    def path(self, name):
        return os.path.join(self.dir, name)

    def start(self, name, command, ready):
        """Start a server on the socket NAME; it is ready when it has made
        the file READY."""
        ready = self.path(ready)
        for left in (ready, self.path(name)):  # By one of that name before.
            if os.path.lexists(left):
                os.unlink(left)
        with open(self.path(name + ".log"), "w") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        self.processes[name] = process
        while not os.path.exists(ready):
            if process.poll() is not None:
                with open(self.path(name + ".log")) as log:
                    die(f"{name} ended: {log.read()}")
            time.sleep(0.01)
        return process

    def stop(self, name):
        process = self.processes.pop(name)
        process.terminate()
        process.wait()

    def uri(self, socket, export=""):
        return f"nbd+unix:///{export}?socket={self.path(socket)}"

    def start_nbdkit(self, name, *arguments):
        """nbdkit, read-only, on the socket NAME."""
        self.start(name, ["nbdkit", "-f", "-r", "-U", self.path(name), "-P",
                          self.path(name + ".pid"), *arguments],
                   name + ".pid")

    def start_driver(self, store):
        """A driver, on the socket "driver"."""
        self.start("driver", [
            os.environ["BLOBPAGER_NBDKIT"], "-f", "-U", self.path("driver"),
            "-P", self.path("driver.pid"), os.environ["BLOBPAGER_PLUGIN"],
            "store=" + store], "driver.pid")

    def start_link(self, name, target, rtt_ms):
        """The socket NAME, with TARGET at the end of a long link."""
        self.start(name, ["lagsim", "--pidfile=" + self.path(name + ".pid"),
                          self.path(name), self.path(target), str(rtt_ms)],
                   name + ".pid")

    def start_blobpagerd(self, *arguments):
        """The daemon, on the socket "blobpagerd"."""
        self.start("blobpagerd", [
            "blobpagerd", "--listen=unix:" + self.path("blobpagerd"),
            "--control=" + self.path("control"), "--profile=off",
            "--pidfile=" + self.path("blobpagerd.pid"), *arguments],
            "blobpagerd.pid")

    def status(self):
        return json.loads(run(["blobpager", "status", "--json",
                               "--control=" + self.path("control")]))

    def dense_image(self, name, size):
        """Reproducible bytes without a hole, so that no server can save
        itself one."""
        source = random.Random(1)
        with open(self.path(name), "wb") as image:
            while size > 0:
                image.write(source.randbytes(min(size, MIB)))
                size -= MIB
        return self.path(name)

    def import_image(self, image, tag):
        """Uncompressed, into the store "store"; its path."""
        run(["blobpager", "import", "--store=" + self.path("store"),
             "--compress=none", "--name=" + tag, image])
        return self.path("store")


def in_turn(rounds, contenders):
    """Every contender's values: { name: [a value a round] }."""
    values = {name: [] for name in contenders}
    names = list(contenders)
    for i in range(rounds):
        k = i % len(names)
        for name in names[k:] + names[:k]:
            values[name].append(contenders[name]())
    return values


def medians(values):
    return {name: statistics.median(v) for name, v in values.items()}


def for_seconds(seconds):
    """Options for fio: until so much time has passed."""
    return ["--time_based", f"--runtime={round(seconds * 1000)}ms"]


def for_bytes(count):
    """Options for fio: until so much has been read."""
    return [f"--io_size={count}"]


def fio(uri, block, depth, jobs, size, duration):
    """Random reads a second, of an image of SIZE bytes."""
    out = run(["fio", "--name=bench", "--ioengine=nbd", f"--uri={uri}",
               "--rw=randread", f"--bs={block}", f"--iodepth={depth}",
               f"--numjobs={jobs}", "--thread", "--group_reporting",
               f"--size={size}", "--output-format=json", *duration])
    job = json.loads(out[out.index("{"):])["jobs"][0]
    if job["error"] != 0:
        die(f"fio: error {job['error']} from {uri}")
    return job["read"]["iops"]


def nbdcopy_seconds(uri, connections):
    return seconds_of(["nbdcopy", f"--connections={connections}",
                       "--requests=16", uri, "null:"])


# ---- What is printed ----

def machine():
    """The line that a table needs to mean anything."""
    with open("/proc/cpuinfo") as info:
        model = [line.split(":")[1].strip() for line in info
                 if line.startswith("model name")]
    return (f"{len(model)} CPUs ({model[0] if model else '?'}), "
            f"Linux {platform.release()}")


def version(program):
    """Like "nbdkit 1.32.5"."""
    return run([program, "--version"]).split("\n")[0].split(" (")[0]


class Report:
    """Tables of rows, and targets; text (Markdown) or JSON."""

    def __init__(self, title, programs):
        """PROGRAMS: whose versions matter, beside our own."""
        self.title = title
        self.software = ", ".join(version(p) for p in programs)
        self.tables = []
        self.targets = []

    def table(self, columns, rows):
        """COLUMNS: a heading and a format each, like ("seconds", ".1f").
        ROWS: a list of values each; None is not known, or not measured."""
        self.tables.append((columns, rows))

    def target(self, text, value, bound, at_least=True):
        self.targets.append({
            "target": text, "value": round(value, 3), "bound": bound,
            "met": value >= bound if at_least else value <= bound,
            "sense": ">=" if at_least else "<="})

    def print(self, as_json):
        head = {"title": self.title, "machine": machine(),
                "date": datetime.date.today().isoformat(),
                "software": self.software}
        if as_json:
            tables = [[dict(zip([name for name, _ in columns], row))
                       for row in rows] for columns, rows in self.tables]
            print(json.dumps({**head, "tables": tables,
                              "targets": self.targets}, indent=2))
            return
        print(f"{self.title}\n" + "; ".join(filter(None, [
            head["date"], head["machine"], self.software])) + "\n")
        for columns, rows in self.tables:
            print_table(columns, rows)
        for t in self.targets:
            print(f"{'met' if t['met'] else 'NOT MET':<8} {t['target']}: "
                  f"{t['value']:.2f} ({t['sense']} {t['bound']:g})")
        sys.stdout.flush()


def print_table(columns, rows):
    cells = [[name for name, _ in columns]] + [
        ["" if value is None else format(value, form)
         for value, (_, form) in zip(row, columns)] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
    for n, row in enumerate(cells):
        print("| " + row[0].ljust(widths[0]) + " | " + " | ".join(
            c.rjust(w) for c, w in zip(row[1:], widths[1:])) + " |")
        if n == 0:
            print("|" + "-" * (widths[0] + 2) + "|" + "|".join(
                "-" * (w + 1) + ":" for w in widths[1:]) + "|")
    print()


def parse_arguments(description, **defaults):
    """The options that every bench takes."""
    parser = argparse.ArgumentParser(
        description=description, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=5,
                        help="of which the median is shown (5)")
    for name, (value, text) in defaults.items():
        parser.add_argument("--" + name, type=type(value), default=value,
                            help=f"{text} ({value})")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        parser.error("--rounds must be at least 1")
    return arguments
