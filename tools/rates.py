#!/usr/bin/env python3
"""Rates of a running server: concurrent streams of chat answers, tokens per second of all and time to the first token.

    tools/rates.py [--url http://127.0.0.1:8000] [--tokens 128] [--prompt WORDS] [--fields JSON] [--json] 1 8 64

Fields are added to each request; null takes one away. A form goes with "ignore_eos": null, and must be of more than --tokens tokens.
Standard library only. Each stream asks something else, so that no prompt is found in the cache."""
import argparse, http.client, json, random, statistics, sys, threading, time, urllib.parse


def stream(host, model, tokens, words, fields, out):
    text = " ".join(random.choice("the a one two red blue fast slow house river stone light cold warm".split()) for _ in range(words))
    body = {"model": model, "stream": True, "max_tokens": tokens, "temperature": 0, "ignore_eos": True,
            "messages": [{"role": "user", "content": f"{random.random()} Tell a long story about {text}."}],
            "stream_options": {"include_usage": True}} | fields
    body = json.dumps({name: value for name, value in body.items() if value is not None})
    start = time.perf_counter()
    try:
        c = http.client.HTTPConnection(host, timeout=300)
        c.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
        r = c.getresponse()
        if r.status != 200:
            out.append((None, 0, r.read(300).decode(errors="replace")))
            return
        first, count = None, 0
        for line in r:
            if not line.startswith(b"data: ") or line.startswith(b"data: [DONE]"):
                continue
            event = json.loads(line[6:])
            if event.get("usage"):
                count = event["usage"]["completion_tokens"]
            if first is None and event.get("choices") and event["choices"][0]["delta"].get("content"):
                first = time.perf_counter() - start
        out.append((first, count, None))
    except OSError as e:
        out.append((None, 0, str(e)))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--url", default="http://127.0.0.1:8000")
    p.add_argument("--tokens", type=int, default=128)
    p.add_argument("--prompt", type=int, default=20)
    p.add_argument("--fields", type=json.loads, default={})
    p.add_argument("--json", action="store_true", help="print a list of objects")
    p.add_argument("streams", type=int, nargs="+")
    a = p.parse_args()
    host = urllib.parse.urlparse(a.url).netloc
    c = http.client.HTTPConnection(host, timeout=30)
    c.request("GET", "/v1/models")
    model = json.loads(c.getresponse().read())["data"][0]["id"]
    rows = []
    a.json or print("| streams | tok/s | first token, median ms | most ms | failed |\n|--:|--:|--:|--:|--:|")
    warm = False
    for n in [1] + a.streams:  # the first run warms up
        out = []
        threads = [threading.Thread(target=stream, args=(host, model, a.tokens, a.prompt, a.fields, out)) for _ in range(n)]
        start = time.perf_counter()
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        seconds = time.perf_counter() - start
        firsts = sorted(1e3 * f for f, _, _ in out if f is not None) or [float("nan")]
        failed = [e for _, _, e in out if e]
        if warm:
            rows.append({"streams": n, "rate": sum(k for _, k, _ in out) / seconds, "first": statistics.median(firsts), "failed": len(failed)})
        if warm and not a.json:
            print(f"| {n} | {sum(k for _, k, _ in out) / seconds:.0f} | {statistics.median(firsts):.1f} | {firsts[-1]:.1f} | {len(failed)} |", flush=True)
        warm = True
        if failed:
            print("first failure:", failed[0], file=sys.stderr)
    if a.json:
        print(json.dumps(rows))


main()
