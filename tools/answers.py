#!/usr/bin/env python3
"""Asks a running server sixteen different things at a time, and prints the answers as JSON: two servers that print the same answer alike.

    tools/answers.py [--url http://127.0.0.1:8000] [--tokens 128] > ANSWERS.json

A quarter each: plain text with log-probabilities, a JSON schema, tools that must be called, and penalties. Half of each are drawn with a
seed, the others are the likeliest tokens. Standard library only."""
import argparse, http.client, json, threading, urllib.parse

SCHEMA = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 20}, "tags": {"type": "array", "items": {"enum": ["red", "blue"]}, "maxItems": 4},
          "age": {"type": "integer"}}, "required": ["name", "tags", "age"], "additionalProperties": False}
TOOLS = [{"type": "function", "function": {"name": name, "strict": True, "parameters": SCHEMA}} for name in ("find_person", "add_person")]
KINDS = [
    {"logprobs": True, "top_logprobs": 2},
    {"response_format": {"type": "json_schema", "json_schema": {"name": "person", "strict": True, "schema": SCHEMA}}},
    {"tools": TOOLS, "tool_choice": "required"},
    {"frequency_penalty": 0.5, "repetition_penalty": 1.1},
]


def ask(host, model, number, tokens, answers):
    body = {"model": model, "max_tokens": tokens, "messages": [{"role": "user", "content": f"Say something about the number {number}, and about {number * number}."}]}
    body |= KINDS[number % len(KINDS)] | ({"temperature": 1.0, "seed": number} if number // len(KINDS) % 2 else {"temperature": 0})
    c = http.client.HTTPConnection(host, timeout=300)
    c.request("POST", "/v1/chat/completions", json.dumps(body), {"content-type": "application/json"})
    r = c.getresponse()
    answer = json.loads(r.read())
    if r.status == 200:
        for call in answer["choices"][0]["message"].get("tool_calls") or []:
            call["id"] = ""  # by chance
        answer = {"choices": answer["choices"], "usage": answer["usage"]["completion_tokens"]}
    answers[number] = answer


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--url", default="http://127.0.0.1:8000")
    p.add_argument("--tokens", type=int, default=128)
    a = p.parse_args()
    host = urllib.parse.urlparse(a.url).netloc
    c = http.client.HTTPConnection(host, timeout=30)
    c.request("GET", "/v1/models")
    model = json.loads(c.getresponse().read())["data"][0]["id"]
    answers = [None] * 16
    threads = [threading.Thread(target=ask, args=(host, model, n, a.tokens, answers)) for n in range(len(answers))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print(json.dumps(answers, indent=1))


main()
