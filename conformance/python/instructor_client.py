"""instructor, with the clients of OpenAI and Anthropic, against a server that follows a script."""

import anthropic
import instructor
import openai
from pydantic import BaseModel, ConfigDict, field_validator

import report
from report import same, holds, raises

r = report.Report("instructor (Python)", "instructor", "openai", "anthropic")
chats = openai.OpenAI(base_url=report.URL + "/v1", api_key=report.KEY, max_retries=0)
messages = anthropic.Anthropic(base_url=report.URL, api_key=report.KEY, max_retries=0)


class Report(BaseModel):
    """The weather of a city."""

    model_config = ConfigDict(extra="forbid")

    city: str
    degrees: int


class Warm(Report):
    """A report that the script does not give."""

    @field_validator("degrees")
    @classmethod
    def warm(cls, value):
        """Refuses what is cold."""
        if value < 20:
            raise ValueError("it must be warm")
        return value



def asked(script, name):
    """What a request says. A script that calls a tool calls the one of a name: instructor names tools by classes."""
    script = "give " + name if script == "give" else script
    return {"model": report.MODEL, "max_tokens": 400, "messages": [{"role": "user", "content": "script: " + script}], "max_retries": 0}


# Modes, and the script that writes what each asks for: JSON, or a call.
WAYS = {
    "tools": (instructor.from_openai(chats, mode=instructor.Mode.TOOLS), "give"),
    "strict tools": (instructor.from_openai(chats, mode=instructor.Mode.TOOLS_STRICT), "give"),
    "JSON": (instructor.from_openai(chats, mode=instructor.Mode.JSON), "report"),
    "JSON of a schema": (instructor.from_openai(chats, mode=instructor.Mode.JSON_SCHEMA), "report"),
    "responses, tools": (instructor.from_openai(chats, mode=instructor.Mode.RESPONSES_TOOLS), "give"),
    "anthropic, tools": (instructor.from_anthropic(messages, mode=instructor.Mode.ANTHROPIC_TOOLS), "give"),
    "anthropic, JSON": (instructor.from_anthropic(messages, mode=instructor.Mode.ANTHROPIC_JSON), "report"),
}

for name, (client, script) in WAYS.items():

    @r.check("structured", "an object, " + name)
    def _():
        got, completion = client.chat.completions.create_with_completion(response_model=Report, **asked(script, "Report"))
        same(got.model_dump(), report.REPORT)
        holds(completion.usage, completion)

    @r.check("structured", "an object of another form is refused, " + name)
    def _():
        error = raises(Exception, lambda: client.chat.completions.create(response_model=Warm, **asked(script, "Warm")))
        holds("it must be warm" in str(error), error)

    @r.check("structured", "an object piece by piece, " + name)
    def _():
        pieces = list(client.chat.completions.create_partial(response_model=Report, **asked(script, "PartialReport")))
        holds(len(pieces) > 1, pieces)
        same(pieces[-1].model_dump(), report.REPORT)


r.end()
