"""Checks of a client against a server that follows a script: each is one line, and a failed one ends the program with status 1.

A program needs ATLAS_SCRIPTED, ATLAS_KEY and ATLAS_MODEL (tools/scripted.sh sets them). ATLAS_RESULTS names a file that gets the lines too.
"""

import importlib.metadata
import os
import sys
import time
import traceback
import urllib.request

URL = os.environ["ATLAS_SCRIPTED"]
KEY = os.environ["ATLAS_KEY"]
MODEL = os.environ["ATLAS_MODEL"]

# What the scripts write.
HELLO = "Hello from Atlas: naïve café, 你好, 👩🏽‍💻."
COUNT = "one two three four five six seven eight nine ten"
THOUGHT = "The user greets. I greet back."
GREETED = "Good day to you."
CITY = 'São Paulo "SP" {}'
WEATHER = "It is 18 degrees in Paris."
TOO_LONG = "word " * 40_000

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}, "unit": {"type": "string"}}, "required": ["city"]}
NOTHING = {"type": "object", "properties": {}}
STRICT = {"type": "object", "properties": {"city": {"type": "string"}, "unit": {"enum": ["celsius", "kelvin"]}}, "required": ["city", "unit"], "additionalProperties": False}
REPORT = {"city": "Paris", "degrees": 18}  # what the script of that name writes


class Report:
    """The checks of one client."""

    def __init__(self, client, *packages):
        self.client, self.passed, self.failed = client, 0, 0
        for package in packages:
            self.line("version", package + " " + importlib.metadata.version(package), "")

    def line(self, *columns):
        """Prints a line, and adds it to the results."""
        line = "\t".join([self.client, *columns])
        print(line, flush=True)
        if path := os.environ.get("ATLAS_RESULTS"):
            with open(path, "a", encoding="utf-8") as file:
                file.write(line + "\n")

    def check(self, feature, name):
        """Runs the function that it decorates as a check."""

        def run(function):
            verdict = "ok"
            try:
                function()
                self.passed += 1
            except Exception:  # whatever it is, the check failed
                verdict = "FAIL"
                self.failed += 1
                traceback.print_exc()
            self.line(feature, name, verdict)
            return function

        return run

    def end(self):
        """Prints the count and ends the program."""
        print(f"{self.client}: {self.passed} of {self.passed + self.failed} checks passed")
        sys.exit(1 if self.failed else 0)


def same(got, want):
    """Fails where two values differ."""
    if got != want:
        raise AssertionError(f"got {got!r}, want {want!r}")


def holds(condition, *shown):
    """Fails where a condition does not hold, and shows what it is about."""
    if not condition:
        raise AssertionError(" ".join(repr(value) for value in shown))


def raises(kind, function):
    """Gives the exception of a kind that a function raises."""
    try:
        function()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__} was raised")


def running():
    """How many requests the server works on."""
    request = urllib.request.Request(URL + "/metrics", headers={"Authorization": "Bearer " + KEY})
    with urllib.request.urlopen(request) as answer:
        for line in answer.read().decode().splitlines():
            if line.startswith("vllm:num_requests_running"):
                return float(line.rsplit(" ", 1)[1])
    raise AssertionError("/metrics has no count of requests")


def idle():
    """Waits until the server works on nothing."""
    for _ in range(100):
        if running() == 0:
            return
        time.sleep(0.05)
    raise AssertionError("requests still run long after the client left")
