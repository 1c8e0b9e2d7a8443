"""Anthropic's Python client, unmodified, against a server that follows a script."""

import json
import re

import anthropic
import pydantic

import report
from report import same, holds, raises

r = report.Report("anthropic (Python)", "anthropic")
client = anthropic.Anthropic(base_url=report.URL, api_key=report.KEY, max_retries=0)

TOOLS = [
    {"name": "get_weather", "description": "The weather of a city.", "input_schema": report.SCHEMA},
    {"name": "get_time", "input_schema": report.NOTHING},
]

STRICT = [{"name": "get_weather", "input_schema": report.STRICT, "strict": True}, TOOLS[1]]


class Report(pydantic.BaseModel):
    """The weather of a city."""

    city: str
    degrees: int


WANTED = {"format": {"type": "json_schema", "schema": Report.model_json_schema() | {"additionalProperties": False}}}


def asked(script):
    return {"model": report.MODEL, "system": "You are brief.", "messages": [{"role": "user", "content": "Please.\nscript: " + script}]}


def whole(script, **fields):
    return client.messages.create(**asked(script) | {"max_tokens": 400} | fields)


def streamed(script, **fields):
    with client.messages.stream(**asked(script) | {"max_tokens": 400} | fields) as events:
        return events.get_final_message()


WAYS = {"whole": whole, "streamed": streamed}


def text(message):
    return "".join(block.text for block in message.content if block.type == "text").strip()


def blocks(message, kind):
    return [block for block in message.content if block.type == kind]


for how, ask in WAYS.items():
    feature = "chat" if how == "whole" else "stream"

    @r.check(feature, "answer, " + how)
    def _():
        got = ask("hello")
        same((text(got), got.stop_reason, got.role, got.type), (report.HELLO, "end_turn", "assistant", "message"))
        holds(got.id.startswith("msg_") and got.usage.input_tokens + (got.usage.cache_read_input_tokens or 0) > 0 and got.usage.output_tokens > 0, got)

    @r.check(feature, "limit and stop sequence, " + how)
    def _():
        got = ask("hello", max_tokens=3)
        same((got.stop_reason, got.usage.output_tokens), ("max_tokens", 3))
        got = ask("count", stop_sequences=[" four"])
        same((text(got), got.stop_reason, got.stop_sequence), ("one two three", "stop_sequence", " four"))

    @r.check("tools", "round trip, " + how)
    def _():
        got = ask("call", tools=TOOLS)
        calls = blocks(got, "tool_use")
        same((got.stop_reason, [c.name for c in calls], calls[0].input), ("tool_use", ["get_weather"], {"city": "Paris", "unit": "celsius"}))
        history = asked("call")["messages"] + [
            {"role": "assistant", "content": got.content},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": calls[0].id, "content": "18 degrees"}]},
        ]
        same(text(ask("call", messages=history, tools=TOOLS)), report.WEATHER)

    @r.check("parallel calls", how)
    def _():
        calls = blocks(ask("parallel", tools=TOOLS), "tool_use")
        same([c.input["city"] for c in calls], ["Paris", report.CITY])
        same(len(blocks(ask("parallel", tools=TOOLS, tool_choice={"type": "auto", "disable_parallel_tool_use": True}), "tool_use")), 1)

    @r.check("structured", "JSON of a schema, " + how)
    def _():
        same(json.loads(text(ask("report", output_config=WANTED))), report.REPORT)

    @r.check("structured", "calls that must be, " + how)
    def _():
        for choice in {"type": "any"}, {"type": "any", "disable_parallel_tool_use": True}, {"type": "tool", "name": "get_weather"}:
            for tools in TOOLS, STRICT:
                got = ask("call", tools=tools, tool_choice=choice)
                same((got.stop_reason, [(c.name, c.input) for c in blocks(got, "tool_use")]), ("tool_use", [("get_weather", {"city": "Paris", "unit": "celsius"})]))

    @r.check("structured", "other answers cannot come, " + how)
    def _():
        for fields in {"output_config": WANTED}, {"tools": TOOLS, "tool_choice": {"type": "any"}}:
            raises(anthropic.APIStatusError, lambda: ask("hello", **fields))
        raises(anthropic.APIStatusError, lambda: ask("noargs", tools=TOOLS, tool_choice={"type": "tool", "name": "get_weather"}))

    @r.check("tools", "no arguments, unknown tool, " + how)
    def _():
        same(blocks(ask("noargs", tools=TOOLS), "tool_use")[0].input, {})
        holds("no_such_tool" in text(ask("unknown", tools=TOOLS)))

    @r.check("reasoning", "thinking block comes back, " + how)
    def _():
        fields = {"tools": TOOLS, "max_tokens": 2000, "thinking": {"type": "enabled", "budget_tokens": 1024}}
        got = ask("weather", **fields)
        same([b.type for b in got.content], ["thinking", "text", "tool_use"])
        holds("weather of Paris" in got.content[0].thinking and got.content[0].signature, got)
        history = asked("weather")["messages"] + [
            {"role": "assistant", "content": got.content},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": got.content[2].id, "content": [{"type": "text", "text": "18 degrees"}]}]},
        ]
        same(text(ask("weather", messages=history, **fields)), report.WEATHER)

    @r.check("reasoning", "off, " + how)
    def _():
        got = ask("think", thinking={"type": "disabled"})
        same((text(got), len(got.content)), (report.GREETED, 1))


@r.check("structured", "parse gives an object")
def _():
    same(client.messages.parse(**asked("report"), max_tokens=400, output_format=Report).parsed_output, Report(**report.REPORT))
    with client.messages.stream(**asked("report"), max_tokens=400, output_format=Report) as events:
        same(events.get_final_message().parsed_output, Report(**report.REPORT))


@r.check("structured", "what cannot be held is refused")
def _():
    form = {"format": {"type": "json_schema", "schema": {"type": "string", "pattern": "("}}}
    error = raises(anthropic.BadRequestError, lambda: whole("report", output_config=form))
    holds("output_config.format.schema" in error.message and "pattern" in error.message, error)


@r.check("stream", "raw events in order")
def _():
    kinds = []
    for event in client.messages.create(**asked("parallel"), max_tokens=400, tools=TOOLS, stream=True):
        if event.type != "ping" and (not kinds or kinds[-1] != event.type):
            kinds.append(event.type)
    block = ["content_block_start", "content_block_delta", "content_block_stop"]
    same(kinds, ["message_start", *block, *block, *block, "message_delta", "message_stop"])


@r.check("tokens", "count_tokens is what a message is charged")
def _():
    for script, fields in {"hello": {}, "call": {"tools": TOOLS}}.items():
        u = whole(script, **fields).usage
        same(client.messages.count_tokens(**asked(script), **fields).input_tokens, u.input_tokens + (u.cache_read_input_tokens or 0) + (u.cache_creation_input_tokens or 0))


@r.check("tokens", "cached reads are reported")
def _():
    filler = [{"type": "text", "text": "You know much about " + "rivers, " * 200, "cache_control": {"type": "ephemeral"}}]
    whole("hello", system=filler)
    holds(whole("hello", system=filler).usage.cache_read_input_tokens > 200)


@r.check("models", "list and get")
def _():
    same([(m.id, m.type) for m in client.models.list()], [(report.MODEL, "model")])
    same(client.models.retrieve(report.MODEL).type, "model")


@r.check("errors", "bad request")
def _():
    same(raises(anthropic.BadRequestError, lambda: whole("hello", messages=[])).body["error"]["type"], "invalid_request_error")
    raises(anthropic.BadRequestError, lambda: whole("hello", extra_body={"temperature": 2}))


@r.check("errors", "context length")
def _():
    error = raises(anthropic.BadRequestError, lambda: whole("", messages=[{"role": "user", "content": report.TOO_LONG}]))
    holds(re.search(r"prompt is too long: \d+ tokens > \d+ maximum", error.message), error.message)


@r.check("errors", "not found")
def _():
    same(raises(anthropic.NotFoundError, lambda: whole("hello", model="no-such-model")).body["error"]["type"], "not_found_error")


@r.check("errors", "authentication")
def _():
    wrong = anthropic.Anthropic(base_url=report.URL, api_key="wrong", max_retries=0)
    error = raises(anthropic.AuthenticationError, lambda: wrong.messages.create(**asked("hello"), max_tokens=1))
    same((error.body["type"], error.body["error"]["type"]), ("error", "authentication_error"))


@r.check("errors", "bearer key")
def _():
    bearer = anthropic.Anthropic(base_url=report.URL, auth_token=report.KEY, api_key=None, max_retries=0)
    same(text(bearer.messages.create(**asked("hello"), max_tokens=100)), report.HELLO)


@r.check("errors", "full queue")
def _():
    error = raises(anthropic.APIStatusError, lambda: whole("full"))
    holds(error.status_code in (429, 529) and error.body["error"]["type"] in ("rate_limit_error", "overloaded_error"), error)


@r.check("errors", "engine fails in a stream")
def _():
    same(raises(anthropic.APIStatusError, lambda: streamed("fail")).body["error"]["type"], "api_error")


@r.check("cancel", "the server stops when the client leaves")
def _():
    with client.messages.stream(**asked("long"), max_tokens=8000) as events:
        for _ in range(5):
            next(events)
        holds(report.running() > 0)
    report.idle()


r.end()
