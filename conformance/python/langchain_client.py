"""langchain, with its OpenAI and its Anthropic models, against a server that follows a script."""

from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

import report
from report import same, holds

r = report.Report("langchain (Python)", "langchain", "langchain-openai", "langchain-anthropic", "openai", "anthropic")


@tool
def get_weather(city: str, unit: str = "celsius") -> str:
    """The weather of a city."""
    return f"18 degrees {unit} in {city}"


COMMON = {"max_tokens": 2000, "max_retries": 0}
MODELS = {
    "openai": ChatOpenAI(model=report.MODEL, base_url=report.URL + "/v1", api_key=report.KEY, stream_usage=True, **COMMON),
    "openai responses": ChatOpenAI(model=report.MODEL, base_url=report.URL + "/v1", api_key=report.KEY, use_responses_api=True, reasoning={"effort": "medium"}, **COMMON),
    "anthropic": ChatAnthropic(model=report.MODEL, base_url=report.URL, api_key=report.KEY, thinking={"type": "enabled", "budget_tokens": 1024}, **COMMON),
}


def asked(script):
    return [HumanMessage("Please.\nscript: " + script)]


def streamed(model, messages):
    whole = None
    for chunk in model.stream(messages):
        whole = chunk if whole is None else whole + chunk
    return whole


for name, model in MODELS.items():
    for how, ask in {"whole": lambda m, q: m.invoke(q), "streamed": streamed}.items():

        @r.check("chat" if how == "whole" else "stream", f"{name}, {how}")
        def _():
            got = ask(model, asked("hello"))
            same(got.text, report.HELLO)
            holds(got.usage_metadata["input_tokens"] > 0 and got.usage_metadata["output_tokens"] > 0, got.usage_metadata)

        @r.check("tools", f"round trip, {name}, {how}")
        def _():
            bound = model.bind_tools([get_weather])
            got = ask(bound, asked("call"))
            same([(c["name"], c["args"]) for c in got.tool_calls], [("get_weather", {"city": "Paris", "unit": "celsius"})])
            same(ask(bound, asked("call") + [got, ToolMessage("18 degrees", tool_call_id=got.tool_calls[0]["id"])]).text, report.WEATHER)

        @r.check("parallel calls", f"{name}, {how}")
        def _():
            same([c["args"]["city"] for c in ask(model.bind_tools([get_weather]), asked("parallel")).tool_calls], ["Paris", report.CITY])

        if name != "openai":  # that one drops thoughts: its fields have no place for them

            @r.check("reasoning", f"{name}, {how}")
            def _():
                got = ask(model, asked("think"))
                same(got.text.strip(), report.GREETED)
                holds(any(block["type"] == "reasoning" for block in got.content_blocks), got.content_blocks)

    @r.check("tools", f"agent, {name}")
    def _():
        done = create_agent(model, [get_weather]).invoke({"messages": asked("weather")})
        same(done["messages"][-1].text, report.WEATHER)


r.end()
