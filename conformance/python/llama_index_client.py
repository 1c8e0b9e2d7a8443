"""llama-index, with its models for OpenAI's API and for Anthropic's, against a server that follows a script."""

import json

from llama_index.core.llms import ChatMessage, LLMMetadata
from llama_index.core.tools import FunctionTool
from llama_index.llms.anthropic import Anthropic
from llama_index.llms.openai_like import OpenAILike

import report
from report import same

r = report.Report("llama-index (Python)", "llama-index-core", "llama-index-llms-openai-like", "llama-index-llms-anthropic", "openai", "anthropic")


def get_weather(city: str, unit: str = "celsius") -> str:
    """The weather of a city."""
    return "18 degrees"


TOOL = FunctionTool.from_defaults(get_weather)


class Scripted(Anthropic):
    """The Anthropic model under a name that the library has no entry for."""

    @property
    def metadata(self):
        return LLMMetadata(context_window=32768, num_output=self.max_tokens, is_chat_model=True, is_function_calling_model=True, model_name=report.MODEL)


MODELS = {
    "openai": OpenAILike(model=report.MODEL, api_base=report.URL + "/v1", api_key=report.KEY, is_chat_model=True, is_function_calling_model=True, max_tokens=400, max_retries=0, context_window=32768),
    "anthropic": Scripted(model=report.MODEL, base_url=report.URL, api_key=report.KEY, max_tokens=400, max_retries=0),
}


def asked(script):
    return [ChatMessage(role="system", content="You are brief."), ChatMessage(role="user", content="Please.\nscript: " + script)]


for name, model in MODELS.items():

    @r.check("chat", name)
    def _():
        same(model.chat(asked("hello")).message.content, report.HELLO)

    @r.check("stream", name)
    def _():
        same("".join(piece.delta or "" for piece in model.stream_chat(asked("hello"))), report.HELLO)

    @r.check("tools", f"round trip, {name}")
    def _():
        got = model.chat_with_tools([TOOL], chat_history=asked("call"))
        calls = model.get_tool_calls_from_response(got)
        same([(c.tool_name, c.tool_kwargs) for c in calls], [("get_weather", {"city": "Paris", "unit": "celsius"})])
        result = ChatMessage(role="tool", content="18 degrees", additional_kwargs={"tool_call_id": calls[0].tool_id})
        same(model.chat_with_tools([TOOL], chat_history=asked("call") + [got.message, result]).message.content, report.WEATHER)

    @r.check("parallel calls", name)
    def _():
        got = model.chat_with_tools([TOOL], chat_history=asked("parallel"), allow_parallel_tool_calls=True)
        same([c.tool_kwargs["city"] for c in model.get_tool_calls_from_response(got)], ["Paris", report.CITY])

    @r.check("tools", f"streamed call, {name}")
    def _():
        last = list(model.stream_chat_with_tools([TOOL], chat_history=asked("call")))[-1]
        same([c.tool_kwargs for c in model.get_tool_calls_from_response(last)], [{"city": "Paris", "unit": "celsius"}])


r.end()
