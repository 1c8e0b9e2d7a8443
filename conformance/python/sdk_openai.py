"""OpenAI's Python client, unmodified, against a server that follows a script."""

import json

import openai
import pydantic

import report
from report import same, holds, raises

r = report.Report("openai (Python)", "openai")
client = openai.OpenAI(base_url=report.URL + "/v1", api_key=report.KEY, max_retries=0)

TOOLS = [
    {"type": "function", "function": {"name": "get_weather", "description": "The weather of a city.", "parameters": report.SCHEMA}},
    {"type": "function", "function": {"name": "get_time"}},
]
ITEMS = [
    {"type": "function", "name": "get_weather", "description": "The weather of a city.", "parameters": report.SCHEMA, "strict": False},
    {"type": "function", "name": "get_time", "parameters": report.NOTHING, "strict": False},
]


def messages(script):
    return [{"role": "system", "content": "You are brief."}, {"role": "user", "content": "Please.\nscript: " + script}]


def chat(script, **fields):
    return client.chat.completions.create(**{"model": report.MODEL, "max_tokens": 400, "messages": messages(script)} | fields)


def stream(script, **fields):
    """Puts a stream together: text, thoughts under both names, calls, reason to end, usage."""
    text, reasoning, content, calls, finish, usage = "", "", "", {}, None, None
    for chunk in chat(script, stream=True, stream_options={"include_usage": True}, **fields):
        usage = chunk.usage or usage
        for choice in chunk.choices:
            delta = choice.delta
            text += delta.content or ""
            reasoning += getattr(delta, "reasoning", None) or ""
            content += getattr(delta, "reasoning_content", None) or ""
            finish = choice.finish_reason or finish
            for piece in delta.tool_calls or []:
                if piece.index not in calls:
                    holds(piece.id and piece.function.name and piece.type == "function", piece)
                    calls[piece.index] = {"id": piece.id, "name": piece.function.name, "arguments": ""}
                else:
                    holds(not piece.id and not piece.function.name, piece)
                calls[piece.index]["arguments"] += piece.function.arguments or ""
    return text, reasoning, content, [calls[i] for i in sorted(calls)], finish, usage


def respond(script, **fields):
    return client.responses.create(**{"model": report.MODEL, "max_output_tokens": 400, "instructions": "You are brief.", "input": "Please.\nscript: " + script} | fields)


@r.check("chat", "whole answer")
def _():
    got = chat("hello")
    same((got.choices[0].message.content, got.choices[0].finish_reason, got.choices[0].message.role), (report.HELLO, "stop", "assistant"))


@r.check("chat", "finish reason length")
def _():
    got = chat("hello", max_completion_tokens=3)
    same((got.choices[0].finish_reason, got.usage.completion_tokens), ("length", 3))


@r.check("chat", "stop string")
def _():
    same(chat("count", stop=[" four"]).choices[0].message.content, "one two three")


@r.check("chat", "three choices, log-probabilities")
def _():
    got = chat("hello", n=3, logprobs=True, top_logprobs=2)
    same([c.message.content for c in got.choices], [report.HELLO] * 3)
    same(sum(len(c.logprobs.content) for c in got.choices), got.usage.completion_tokens)


@r.check("stream", "deltas are the whole answer")
def _():
    text, *_, finish, usage = stream("hello")
    same((text, finish), (report.HELLO, "stop"))
    same(usage, chat("hello").usage.model_copy(update={"prompt_tokens_details": usage.prompt_tokens_details}))


@r.check("stream", "the client's own stream helper")
def _():
    with client.chat.completions.stream(model=report.MODEL, max_tokens=400, messages=messages("hello")) as events:
        same(events.get_final_completion().choices[0].message.content, report.HELLO)


@r.check("tools", "round trip, whole")
def _():
    got = chat("weather", tools=TOOLS).choices[0]
    same((got.finish_reason, len(got.message.tool_calls)), ("tool_calls", 1))
    call = got.message.tool_calls[0]
    same((call.function.name, json.loads(call.function.arguments)), ("get_weather", {"city": "Paris", "unit": "celsius"}))
    history = messages("weather") + [got.message, {"role": "tool", "tool_call_id": call.id, "content": "18 degrees"}]
    same(chat("weather", messages=history, tools=TOOLS).choices[0].message.content, report.WEATHER)


@r.check("tools", "round trip, streamed")
def _():
    text, _, _, calls, finish, _ = stream("weather", tools=TOOLS)
    same((text.strip(), finish, len(calls)), ("Let me look.", "tool_calls", 1))
    asked = {"role": "assistant", "content": text, "tool_calls": [{"id": calls[0]["id"], "type": "function", "function": {"name": calls[0]["name"], "arguments": calls[0]["arguments"]}}]}
    history = messages("weather") + [asked, {"role": "tool", "tool_call_id": calls[0]["id"], "content": "18 degrees"}]
    same(stream("weather", messages=history, tools=TOOLS)[0], report.WEATHER)


@r.check("tools", "no arguments, unknown tool")
def _():
    same(chat("noargs", tools=TOOLS).choices[0].message.tool_calls[0].function.arguments, "{}")
    holds("no_such_tool" in stream("unknown", tools=TOOLS)[0])


@r.check("tools", "call cut by the limit")
def _():
    _, _, _, calls, finish, _ = stream("cutcall", tools=TOOLS)
    same((calls[0]["arguments"], finish), ('{"city": "Par', "length"))


@r.check("parallel calls", "whole and streamed")
def _():
    whole = [c.function.arguments for c in chat("parallel", tools=TOOLS).choices[0].message.tool_calls]
    _, _, _, calls, _, _ = stream("parallel", tools=TOOLS)
    same([c["arguments"] for c in calls], whole)
    same((json.loads(whole[1])["city"], len({c["id"] for c in calls})), (report.CITY, 2))
    same(len(chat("parallel", tools=TOOLS, parallel_tool_calls=False).choices[0].message.tool_calls), 1)


class Report(pydantic.BaseModel):
    """The weather of a city."""

    city: str
    degrees: int


class GetWeather(pydantic.BaseModel):
    """The arguments of a call."""

    city: str
    unit: str


WANTED = {"type": "json_schema", "json_schema": {"name": "report", "schema": Report.model_json_schema(), "strict": True}}
STRICT = [{"type": "function", "function": {"name": "get_weather", "parameters": report.STRICT, "strict": True}}, TOOLS[1]]
NAMED = {"type": "function", "function": {"name": "get_weather"}}
CHOICES = {
    "required": "required",
    "named": NAMED,
    "allowed": {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [NAMED]}},
}


@r.check("structured", "parse gives an object")
def _():
    got = client.chat.completions.parse(model=report.MODEL, max_tokens=400, messages=messages("report"), response_format=Report)
    same(got.choices[0].message.parsed, Report(**report.REPORT))
    with client.chat.completions.stream(model=report.MODEL, max_tokens=400, messages=messages("report"), response_format=Report) as events:
        same(events.get_final_completion().choices[0].message.parsed, Report(**report.REPORT))


@r.check("structured", "parse gives the arguments of a strict tool")
def _():
    tool = openai.pydantic_function_tool(GetWeather, name="get_weather")
    got = client.chat.completions.parse(model=report.MODEL, max_tokens=400, messages=messages("weather"), tools=[tool])
    same(got.choices[0].message.tool_calls[0].function.parsed_arguments, GetWeather(city="Paris", unit="celsius"))


@r.check("structured", "JSON, whole and streamed")
def _():
    for form in WANTED, {"type": "json_object"}:
        same(json.loads(chat("report", response_format=form).choices[0].message.content), report.REPORT)
        same(json.loads(stream("report", response_format=form)[0]), report.REPORT)


@r.check("structured", "calls that must be, whole and streamed")
def _():
    for choice in CHOICES.values():
        for tools in TOOLS, STRICT:
            got = chat("call", tools=tools, tool_choice=choice).choices[0].message
            same([json.loads(call.function.arguments) for call in got.tool_calls], [{"city": "Paris", "unit": "celsius"}])
            same([call["name"] for call in stream("call", tools=tools, tool_choice=choice)[3]], ["get_weather"])


@r.check("structured", "other answers cannot come")
def _():
    for fields in ({"response_format": WANTED}, *({"tools": TOOLS, "tool_choice": choice} for choice in CHOICES.values())):
        raises(openai.InternalServerError, lambda: chat("hello", **fields))
    raises(openai.InternalServerError, lambda: chat("noargs", tools=TOOLS, tool_choice=NAMED))
    raises(openai.InternalServerError, lambda: chat("cutcall", tools=[STRICT[1]], tool_choice="required"))


@r.check("structured", "what cannot be held is refused")
def _():
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "string", "pattern": "("}, "strict": True}}
    error = raises(openai.BadRequestError, lambda: chat("report", response_format=form))
    holds(error.param.startswith("response_format") and "pattern" in error.message, error)


@r.check("reasoning", "both fields, whole and streamed")
def _():
    got = chat("think")
    m = got.choices[0].message
    same((m.reasoning.strip(), m.reasoning_content.strip(), m.content.strip()), (report.THOUGHT, report.THOUGHT, report.GREETED))
    text, reasoning, content, *_, usage = stream("think")
    same((reasoning, content, text), (m.reasoning, m.reasoning_content, m.content))
    holds(usage.completion_tokens_details.reasoning_tokens == got.usage.completion_tokens_details.reasoning_tokens > 0, usage)


@r.check("reasoning", "off, in two spellings")
def _():
    same(chat("think", reasoning_effort="none").choices[0].message.content, report.GREETED)
    same(chat("think", extra_body={"chat_template_kwargs": {"enable_thinking": False}}).choices[0].message.content, report.GREETED)


@r.check("responses", "create and stream")
def _():
    got = respond("hello")
    same((got.output_text, got.status), (report.HELLO, "completed"))
    text, types = "", []
    for event in respond("hello", stream=True):
        same(event.sequence_number, len(types))
        types.append(event.type)
        if event.type == "response.output_text.delta":
            text += event.delta
    same((text, types[0], types[-1]), (report.HELLO, "response.created", "response.completed"))
    with client.responses.stream(model=report.MODEL, max_output_tokens=400, input="script: hello") as events:
        same(events.get_final_response().output_text, report.HELLO)


@r.check("responses", "tools, round trip by items")
def _():
    got = respond("weather", tools=ITEMS)
    calls = [item for item in got.output if item.type == "function_call"]
    same((len(calls), json.loads(calls[0].arguments)["city"]), (1, "Paris"))
    items = [{"role": "user", "content": "Please.\nscript: weather"}, *got.output, {"type": "function_call_output", "call_id": calls[0].call_id, "output": "18 degrees"}]
    same(respond("weather", input=items, tools=ITEMS).output_text, report.WEATHER)


@r.check("responses", "tools, round trip by id, streamed")
def _():
    last = None
    for event in respond("parallel", tools=ITEMS, stream=True):
        if event.type == "response.completed":
            last = event.response
    outputs = [{"type": "function_call_output", "call_id": item.call_id, "output": "warm"} for item in last.output if item.type == "function_call"]
    same(len(outputs), 2)
    same(respond("", input=outputs, previous_response_id=last.id, tools=ITEMS).output_text, "Paris has 18 degrees, São Paulo 25.")


@r.check("structured", "responses: parse gives an object")
def _():
    asked = {"model": report.MODEL, "max_output_tokens": 400, "text_format": Report}
    same(client.responses.parse(**asked, input="script: report").output_parsed, Report(**report.REPORT))
    with client.responses.stream(**asked, input="script: report") as events:
        same(events.get_final_response().output_parsed, Report(**report.REPORT))


@r.check("structured", "responses: JSON, and what is repeated of its form")
def _():
    got = respond("report", text={"format": {"type": "json_object"}})
    same((json.loads(got.output_text), got.text.format.type), (report.REPORT, "json_object"))
    form = {"type": "json_schema", "name": "report", "schema": Report.model_json_schema(), "strict": True}
    got = respond("report", text={"format": form})
    same(json.loads(got.output_text), report.REPORT)
    same(got.text.format.model_dump(by_alias=True, exclude_unset=True), form)


@r.check("structured", "responses: calls that must be, and others cannot come")
def _():
    strict = [{"type": "function", "name": "get_weather", "parameters": report.STRICT, "strict": True}, ITEMS[1]]
    named = {"type": "function", "name": "get_weather"}
    for choice in "required", named, {"type": "allowed_tools", "mode": "required", "tools": [named]}:
        for tools in ITEMS, strict:
            calls = [item for item in respond("call", tools=tools, tool_choice=choice).output if item.type == "function_call"]
            same([json.loads(call.arguments) for call in calls], [{"city": "Paris", "unit": "celsius"}])
        raises(openai.InternalServerError, lambda: respond("hello", tools=ITEMS, tool_choice=choice))
    raises(openai.InternalServerError, lambda: respond("noargs", tools=ITEMS, tool_choice=named))
    raises(openai.InternalServerError, lambda: respond("hello", text={"format": {"type": "json_object"}}))


@r.check("structured", "responses: what cannot be held is refused")
def _():
    form = {"type": "json_schema", "name": "n", "schema": {"type": "string", "pattern": "("}, "strict": True}
    error = raises(openai.BadRequestError, lambda: respond("report", text={"format": form}))
    holds(error.param == "text.format.schema" and "pattern" in error.message, error)


@r.check("responses", "reasoning items")
def _():
    got = respond("think", reasoning={"effort": "medium"})
    kinds = [item.type for item in got.output]
    same(kinds, ["reasoning", "message"])
    holds(got.usage.output_tokens_details.reasoning_tokens > 0, got.usage)


@r.check("responses", "get, input items, delete")
def _():
    made = respond("hello")
    same(client.responses.retrieve(made.id).output_text, report.HELLO)
    same([item.role for item in client.responses.input_items.list(made.id)], ["user"])
    client.responses.delete(made.id)
    holds(made.id in raises(openai.NotFoundError, lambda: client.responses.retrieve(made.id)).message)


@r.check("responses", "cancel in the background")
def _():
    made = respond("long", background=True, max_output_tokens=8000)
    holds(made.status in ("queued", "in_progress"), made.status)
    same(client.responses.cancel(made.id).status, "cancelled")
    report.idle()


@r.check("errors", "bad request")
def _():
    error = raises(openai.BadRequestError, lambda: chat("hello", temperature=3))
    same((error.code, error.param, error.type), ("invalid_value", "temperature", "invalid_request_error"))


@r.check("errors", "context length")
def _():
    asked = [{"role": "user", "content": report.TOO_LONG}]
    error = raises(openai.BadRequestError, lambda: chat("hello", messages=asked))
    holds(error.code == "context_length_exceeded" and "maximum context length is 32768 tokens" in error.message, error.code, error.message)
    same(raises(openai.BadRequestError, lambda: respond("hello", input=report.TOO_LONG)).code, "context_length_exceeded")


@r.check("errors", "not found")
def _():
    same(raises(openai.NotFoundError, lambda: chat("hello", model="no-such-model")).code, "model_not_found")


@r.check("errors", "authentication")
def _():
    wrong = openai.OpenAI(base_url=report.URL + "/v1", api_key="wrong", max_retries=0)
    same(raises(openai.AuthenticationError, wrong.models.list).code, "invalid_api_key")


@r.check("errors", "full queue")
def _():
    error = raises(openai.APIStatusError, lambda: chat("full"))
    holds(error.status_code in (429, 503) and error.response.headers["retry-after"], error)


@r.check("errors", "engine fails in a stream")
def _():
    raises(openai.APIError, lambda: stream("fail"))


@r.check("tokens", "usage")
def _():
    u = chat("count").usage
    same(u.total_tokens, u.prompt_tokens + u.completion_tokens)
    u = respond("count").usage
    holds(u.total_tokens == u.input_tokens + u.output_tokens > 0, u)


@r.check("models", "list and get")
def _():
    same([m.id for m in client.models.list()], [report.MODEL])
    same(client.models.retrieve(report.MODEL).id, report.MODEL)


@r.check("cancel", "the server stops when the client leaves")
def _():
    for ask in (lambda: chat("long", stream=True, max_tokens=8000), lambda: respond("long", stream=True, max_output_tokens=8000)):
        events = ask()
        for _ in range(5):
            next(events)
        holds(report.running() > 0)
        events.close()
        report.idle()


r.end()
