"""litellm, with its OpenAI and its Anthropic provider, against a server that follows a script."""

import json

import litellm

import report
from report import same, holds, raises

r = report.Report("litellm (Python)", "litellm", "openai", "anthropic")
litellm.telemetry = False
litellm.suppress_debug_info = True

TOOLS = [{"type": "function", "function": {"name": "get_weather", "description": "The weather of a city.", "parameters": report.SCHEMA}}]
PROVIDERS = {
    "openai": {"model": "openai/" + report.MODEL, "api_base": report.URL + "/v1", "api_key": report.KEY},
    "anthropic": {"model": "anthropic/" + report.MODEL, "api_base": report.URL, "api_key": report.KEY},
}


def messages(script):
    return [{"role": "system", "content": "You are brief."}, {"role": "user", "content": "Please.\nscript: " + script}]


for provider, place in PROVIDERS.items():

    def ask(script, **fields):
        return litellm.completion(**place | {"messages": messages(script), "max_tokens": 400, "num_retries": 0} | fields)

    def stream(script, **fields):
        return litellm.stream_chunk_builder(list(ask(script, stream=True, stream_options={"include_usage": True}, **fields)))

    @r.check("chat", provider)
    def _():
        got = ask("hello")
        same((got.choices[0].message.content, got.choices[0].finish_reason), (report.HELLO, "stop"))
        holds(got.usage.prompt_tokens > 0 and got.usage.completion_tokens > 0, got.usage)

    @r.check("stream", provider)
    def _():
        got = stream("hello")
        same((got.choices[0].message.content, got.choices[0].finish_reason), (report.HELLO, "stop"))

    for how, way in {"whole": ask, "streamed": stream}.items():

        @r.check("tools", f"round trip, {provider}, {how}")
        def _():
            got = way("call", tools=TOOLS).choices[0]
            same((got.finish_reason, len(got.message.tool_calls)), ("tool_calls", 1))
            call = got.message.tool_calls[0]
            same((call.function.name, json.loads(call.function.arguments)), ("get_weather", {"city": "Paris", "unit": "celsius"}))
            history = messages("call") + [got.message.model_dump(exclude_none=True), {"role": "tool", "tool_call_id": call.id, "name": "get_weather", "content": "18 degrees"}]
            same(way("call", messages=history, tools=TOOLS).choices[0].message.content, report.WEATHER)

        @r.check("parallel calls", f"{provider}, {how}")
        def _():
            calls = way("parallel", tools=TOOLS).choices[0].message.tool_calls
            same([json.loads(c.function.arguments)["city"] for c in calls], ["Paris", report.CITY])

        @r.check("reasoning", f"{provider}, {how}")
        def _():
            fields = {"thinking": {"type": "enabled", "budget_tokens": 1024}, "allowed_openai_params": ["thinking"], "max_tokens": 2000} if provider == "anthropic" else {}
            got = way("think", **fields).choices[0].message
            same((got.reasoning_content.strip(), got.content.strip()), (report.THOUGHT, report.GREETED))

    @r.check("errors", f"context length, {provider}")
    def _():
        raises(litellm.ContextWindowExceededError, lambda: ask("", messages=[{"role": "user", "content": report.TOO_LONG}]))

    @r.check("errors", f"authentication, {provider}")
    def _():
        raises(litellm.AuthenticationError, lambda: ask("hello", api_key="wrong"))


@r.check("responses", "create")
def _():
    got = litellm.responses(**PROVIDERS["openai"], input="script: hello", max_output_tokens=400)
    same(got.output_text, report.HELLO)


r.end()
