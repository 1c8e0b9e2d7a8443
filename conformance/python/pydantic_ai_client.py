"""pydantic-ai, with its models for the APIs of OpenAI and Anthropic, against a server that follows a script."""

import asyncio

from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput, ToolOutput
from pydantic_ai.messages import ThinkingPart
from pydantic_ai.models.anthropic import AnthropicModel, AnthropicModelSettings
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel, OpenAIResponsesModelSettings
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

import report
from report import same, holds

r = report.Report("pydantic-ai (Python)", "pydantic-ai-slim", "openai", "anthropic")
openai = OpenAIProvider(base_url=report.URL + "/v1", api_key=report.KEY)
anthropic = AnthropicProvider(base_url=report.URL, api_key=report.KEY)
MODELS = {
    "openai": (OpenAIChatModel(report.MODEL, provider=openai), {"max_tokens": 400}),
    "openai responses": (OpenAIResponsesModel(report.MODEL, provider=openai), OpenAIResponsesModelSettings(max_tokens=400, openai_reasoning_effort="medium")),
    "anthropic": (AnthropicModel(report.MODEL, provider=anthropic), AnthropicModelSettings(max_tokens=2000, anthropic_thinking={"type": "enabled", "budget_tokens": 1024})),
}


class Report(BaseModel):
    """The weather of a city."""

    city: str
    degrees: int


for name, (model, settings) in MODELS.items():
    seen = []

    def get_weather(city: str, unit: str = "celsius") -> str:
        """The weather of a city."""
        seen.append(city)
        return "18 degrees"

    def agent(tools=(), **fields):
        return Agent(model, **{"model_settings": settings} | fields, instructions="You are brief.", tools=list(tools), retries=0)

    @r.check("chat", name)
    def _():
        got = agent().run_sync("script: hello")
        same(got.output, report.HELLO)
        usage = got.usage() if callable(got.usage) else got.usage
        holds(usage.input_tokens > 0 and usage.output_tokens > 0, usage)

    @r.check("stream", name)
    def _():
        async def run():
            async with agent().run_stream("script: hello") as stream:
                return [piece async for piece in stream.stream_text(delta=True)]

        same("".join(asyncio.run(run())), report.HELLO)

    @r.check("tools", f"the agent's round trip, {name}")
    def _():
        seen.clear()
        same(agent([get_weather]).run_sync("script: weather").output, report.WEATHER)
        same(seen, ["Paris"])

    @r.check("parallel calls", name)
    def _():
        seen.clear()
        same(agent([get_weather]).run_sync("script: parallel").output, "Paris has 18 degrees, São Paulo 25.")
        same(sorted(seen), ["Paris", report.CITY])

    if name != "anthropic":  # there it asks for that of models alone that it knows

        @r.check("structured", f"native output, {name}")
        def _():
            same(agent(output_type=NativeOutput(Report, strict=True)).run_sync("script: report").output, Report(**report.REPORT))

    @r.check("structured", f"output of a tool, {name}")
    def _():
        brief = agent(output_type=ToolOutput(Report, name="final", strict=True), model_settings={"max_tokens": 400})  # it wants no thoughts with these
        same(brief.run_sync("script: final").output, Report(**report.REPORT))

    @r.check("reasoning", name)
    def _():
        got = agent().run_sync("script: think")
        parts = [part for message in got.all_messages() for part in message.parts if isinstance(part, ThinkingPart)]
        thoughts = [part.content or "".join(part.provider_details["raw_content"]) for part in parts]  # its place for what is no summary
        same((got.output.strip(), [thought.strip() for thought in thoughts]), (report.GREETED, [report.THOUGHT]))


r.end()
