#!/usr/bin/env python3
"""What large bodies cost a server: starts `PROGRAM serve` on a free port, sends them, and prints a table.

    python3 tools/memory.py [--program bin/atlasrt] [--model FILE] [--idle 60] [ARGUMENT OF serve ...]

Memory is the process's resident set, time is that of its processors, so that other work on the machine changes little.
"""

import argparse
import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time

MB = 1_000_000
PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")


class Server:
    """A server that this program started, and what the system says of it."""

    def __init__(self, program, model, more):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [program, "serve", "--model", model, "--port", str(self.port), *more], stdout=self.log, stderr=self.log)
        for _ in range(600):
            if self.process.poll() is not None:
                break
            try:
                if self.request("GET", "/health", None)[0] == 200:
                    return
            except OSError:
                pass
            time.sleep(0.1)
        self.stop()
        self.log.seek(0)
        sys.exit(f"the server did not start:\n{self.log.read()}")

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def request(self, method, path, body, timeout=300):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def memory(self, name):
        """VmRSS or VmHWM in MB."""
        with open(f"/proc/{self.process.pid}/status") as f:
            for line in f:
                if line.startswith(name + ":"):
                    return int(line.split()[1]) * 1024 / MB
        raise KeyError(name)

    def forget_peak(self):
        with open(f"/proc/{self.process.pid}/clear_refs", "w") as f:
            f.write("5")

    def seconds(self):
        """Processor time so far."""
        with open(f"/proc/{self.process.pid}/stat") as f:
            fields = f.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS


def chat(text, tokens=8):
    return json.dumps({"messages": [{"role": "user", "content": text}], "max_tokens": tokens, "temperature": 0, "model": MODEL}).encode()


def timed(server, body):
    start = time.monotonic()
    status, answer = server.request("POST", "/v1/chat/completions", body)
    return time.monotonic() - start, status, answer


def reason(answer):
    """The code of an error."""
    try:
        error = json.loads(answer).get("error") or {}
        return error.get("code") or "ok"
    except ValueError:
        return "no JSON"


def one_large(server, row):
    """(a) One body of 30 MB of spaces."""
    before, cpu = server.memory("VmRSS"), server.seconds()
    server.forget_peak()
    took, status, answer = timed(server, chat(" " * (30 * MB)))
    row("a", "30 MB of spaces: answer", f"{status} {reason(answer)}")
    row("a", "seconds to the answer", f"{took:.2f}")
    row("a", "processor seconds", f"{server.seconds() - cpu:.2f}")
    row("a", "peak above before, MB", f"{server.memory('VmHWM') - before:.0f}")


def beside(server, row):
    """(b) A small chat, alone and beside four bodies of 10 MB."""
    small = chat("Say a word.")
    alone = sorted(timed(server, small)[0] for _ in range(5))
    row("b", "small chat alone, median seconds", f"{alone[2]:.3f}")
    before, cpu = server.memory("VmRSS"), server.seconds()
    server.forget_peak()
    results, large = [], chat(" " * (10 * MB))
    threads = [threading.Thread(target=lambda: results.append(timed(server, large))) for _ in range(4)]
    for t in threads:
        t.start()
    times = []
    while True:
        times.append(timed(server, small)[0])
        if not any(t.is_alive() for t in threads):
            break
    times.sort()
    row("b", f"beside four of 10 MB, median of {len(times)}", f"{times[len(times) // 2]:.3f}")
    row("b", "the slowest of them", f"{times[-1]:.3f}")
    row("b", "answers to the large ones", ", ".join(sorted({f"{status} {reason(answer)}" for _, status, answer in results})))
    row("b", "processor seconds in all", f"{server.seconds() - cpu:.2f}")
    row("b", "peak above before, MB", f"{server.memory('VmHWM') - before:.0f}")


def leave(server, row):
    """(c) Ten senders of 10 MB: five leave in the middle of the body, five once it is sent."""
    body = chat(" " * (10 * MB))
    head = (f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n").encode()
    before = server.memory("VmRSS")
    server.forget_peak()

    def send(share):
        with socket.create_connection(("127.0.0.1", server.port), timeout=120) as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")  # leaves with a reset
            try:
                s.sendall(head + body[:int(len(body) * share)])
            except OSError:
                pass  # refused and closed before all was sent

    start = time.monotonic()
    threads = [threading.Thread(target=send, args=(0.5 if i % 2 else 1,)) for i in range(10)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    sent, cpu = time.monotonic() - start, server.seconds()
    last, quiet = cpu, 0
    for _ in range(600):  # until it rests for two seconds
        time.sleep(0.5)
        now = server.seconds()
        quiet = quiet + 1 if now - last < 0.03 else 0
        last = now
        if quiet == 4:
            break
    row("c", "ten of 10 MB that leave: seconds to send", f"{sent:.2f}")
    row("c", "processor seconds after they left", f"{server.seconds() - cpu:.2f}")
    row("c", "peak above before, MB", f"{server.memory('VmHWM') - before:.0f}")


def conversations(server, row):
    """(e) Short conversations, all different, one after the other."""
    before = server.memory("VmRSS")
    for i in range(50):
        timed(server, chat(f"Number {i * 7919}: name {i + 2} things that begin with the letter {chr(97 + i % 26)}.", 16))
    row("e", "50 conversations: growth, MB", f"{server.memory('VmRSS') - before:.0f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="bin/atlasrt")
    parser.add_argument("--model", default=".cache/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")
    parser.add_argument("--idle", type=float, default=60, help="seconds of rest before memory is compared")
    options, more = parser.parse_known_args()
    rows = []

    def row(case, what, value):
        rows.append((case, what, value))
        print(f"| {case} | {what} | {value} |", flush=True)

    global MODEL
    server = Server(options.program, options.model, more)
    try:
        MODEL = json.loads(server.request("GET", "/v1/models", None)[1])["data"][0]["id"]
        print("| case | what | value |\n|---|---|--:|")
        for _ in range(3):  # what a first request touches is there for good
            timed(server, chat("Say a word.", 64))
        start = server.memory("VmRSS")
        one_large(server, row)
        beside(server, row)
        leave(server, row)
        time.sleep(options.idle)
        row("d", "resident at the start, MB", f"{start:.0f}")
        row("d", f"after all that and {options.idle:.0f} s of rest", f"{server.memory('VmRSS'):.0f}")
        row("d", "growth, MB (at most 100)", f"{server.memory('VmRSS') - start:.0f}")
    finally:
        server.stop()
    server = Server(options.program, options.model, more)  # a fresh one, whose memory nothing has been freed of
    try:
        for _ in range(3):
            timed(server, chat("Say a word.", 64))
        conversations(server, row)
    finally:
        server.stop()


if __name__ == "__main__":
    main()
