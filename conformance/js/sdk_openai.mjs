// OpenAI's JavaScript client, unmodified, against a server that follows a script.
import OpenAI from 'openai';
import * as r from './report.mjs';
import { same, holds, raises } from './report.mjs';

const { check, end } = r.report('openai (JavaScript)', 'openai');
const client = new OpenAI({ baseURL: r.url + '/v1', apiKey: r.key, maxRetries: 0 });

const tools = [
  { type: 'function', function: { name: 'get_weather', description: 'The weather of a city.', parameters: r.schema } },
  { type: 'function', function: { name: 'get_time' } },
];
const items = [
  { type: 'function', name: 'get_weather', description: 'The weather of a city.', parameters: r.schema, strict: false },
  { type: 'function', name: 'get_time', parameters: r.nothing, strict: false },
];
const strict = [{ type: 'function', function: { name: 'get_weather', parameters: r.strict, strict: true } }, tools[1]];
const strictItems = [{ type: 'function', name: 'get_weather', parameters: r.strict, strict: true }, items[1]];
const named = { type: 'function', function: { name: 'get_weather' } };
const messages = (script) => [
  { role: 'system', content: 'You are brief.' },
  { role: 'user', content: 'Please.\nscript: ' + script },
];
const asked = (script, fields) => ({ model: r.model, max_tokens: 400, messages: messages(script), ...fields });
const chat = (script, fields) => client.chat.completions.create(asked(script, fields));
// stream puts an answer together with the client's own helper.
const stream = (script, fields) => client.chat.completions.stream(asked(script, { stream_options: { include_usage: true }, ...fields })).finalChatCompletion();
const respond = (script, fields) =>
  client.responses.create({ model: r.model, max_output_tokens: 400, instructions: 'You are brief.', input: 'Please.\nscript: ' + script, ...fields });

await check('chat', 'whole answer', async () => {
  const got = (await chat('hello')).choices[0];
  same([got.message.content, got.finish_reason, got.message.role], [r.hello, 'stop', 'assistant']);
});
await check('chat', 'limit and stop string', async () => {
  same((await chat('hello', { max_completion_tokens: 3 })).choices[0].finish_reason, 'length');
  same((await chat('count', { stop: ' four' })).choices[0].message.content, 'one two three');
});
await check('chat', 'three choices, log-probabilities', async () => {
  const got = await chat('hello', { n: 3, logprobs: true, top_logprobs: 2 });
  same(got.choices.map((c) => c.message.content), [r.hello, r.hello, r.hello]);
  same(got.choices.reduce((sum, c) => sum + c.logprobs.content.length, 0), got.usage.completion_tokens);
});
await check('stream', 'deltas are the whole answer', async () => {
  let text = '';
  for await (const chunk of await chat('hello', { stream: true })) text += chunk.choices[0].delta.content ?? '';
  same(text, r.hello);
  const got = await stream('hello', { n: 2 });
  same(got.choices.map((c) => [c.message.content, c.finish_reason]), [[r.hello, 'stop'], [r.hello, 'stop']]);
});
for (const [how, ask] of [['whole', chat], ['streamed', stream]]) {
  await check('tools', 'round trip, ' + how, async () => {
    const got = (await ask('weather', { tools })).choices[0];
    same([got.finish_reason, got.message.content.trim(), got.message.tool_calls.length], ['tool_calls', 'Let me look.', 1]);
    const call = got.message.tool_calls[0];
    same([call.type, call.function.name, JSON.parse(call.function.arguments)], ['function', 'get_weather', { city: 'Paris', unit: 'celsius' }]);
    const history = [...messages('weather'), got.message, { role: 'tool', tool_call_id: call.id, content: '18 degrees' }];
    same((await ask('weather', { tools, messages: history })).choices[0].message.content, r.weather);
  });
  await check('parallel calls', how, async () => {
    const calls = (await ask('parallel', { tools })).choices[0].message.tool_calls;
    same(calls.map((c) => JSON.parse(c.function.arguments).city), ['Paris', r.city]);
    holds(calls[0].id !== calls[1].id);
    same((await ask('parallel', { tools, parallel_tool_calls: false })).choices[0].message.tool_calls.length, 1);
  });
  await check('structured', 'JSON, ' + how, async () => {
    for (const response_format of [{ type: 'json_schema', json_schema: { name: 'report', schema: r.wanted, strict: true } }, { type: 'json_object' }]) {
      same(JSON.parse((await ask('report', { response_format })).choices[0].message.content), r.numbers);
      await raises(OpenAI.APIError, () => ask('hello', { response_format }));
    }
  });
  await check('structured', 'calls that must be, ' + how, async () => {
    for (const tool_choice of ['required', named, { type: 'allowed_tools', allowed_tools: { mode: 'required', tools: [named] } }]) {
      for (const list of [tools, strict]) {
        const { tool_calls } = (await ask('call', { tools: list, tool_choice })).choices[0].message;
        same(tool_calls.map((c) => JSON.parse(c.function.arguments)), [{ city: 'Paris', unit: 'celsius' }]);
      }
      await raises(OpenAI.APIError, () => ask('hello', { tools, tool_choice }));
    }
  });
  await check('tools', 'no arguments, unknown tool, ' + how, async () => {
    same((await ask('noargs', { tools })).choices[0].message.tool_calls[0].function.arguments, '{}');
    holds((await ask('unknown', { tools })).choices[0].message.content.includes('no_such_tool'));
  });
}
await check('reasoning', 'both fields, whole and streamed', async () => {
  const got = await chat('think');
  const m = got.choices[0].message;
  same([m.reasoning.trim(), m.reasoning_content.trim(), m.content.trim()], [r.thought, r.thought, r.greeted]);
  holds(got.usage.completion_tokens_details.reasoning_tokens > 0);
  const sums = { reasoning: '', reasoning_content: '', content: '' };
  for await (const chunk of await chat('think', { stream: true })) for (const name in sums) sums[name] += chunk.choices[0].delta[name] ?? '';
  same(sums, { reasoning: m.reasoning, reasoning_content: m.reasoning_content, content: m.content });
});
await check('reasoning', 'off', async () => {
  same((await chat('think', { reasoning_effort: 'none' })).choices[0].message.content, r.greeted);
});
await check('responses', 'create and stream', async () => {
  const got = await respond('hello');
  same([got.output_text, got.status], [r.hello, 'completed']);
  const types = [];
  for await (const event of await respond('hello', { stream: true })) {
    same(event.sequence_number, types.length);
    types.push(event.type);
  }
  same([types[0], types.at(-1)], ['response.created', 'response.completed']);
  const final = await client.responses.stream({ model: r.model, max_output_tokens: 400, input: 'script: hello' }).finalResponse();
  same(final.output_text, r.hello);
});
await check('responses', 'tools, round trip by items', async () => {
  const got = await respond('weather', { tools: items });
  const call = got.output.find((item) => item.type === 'function_call');
  const input = [{ role: 'user', content: 'Please.\nscript: weather' }, ...got.output, { type: 'function_call_output', call_id: call.call_id, output: '18 degrees' }];
  same((await respond('weather', { tools: items, input })).output_text, r.weather);
});
await check('responses', 'tools, round trip by id, streamed', async () => {
  const first = await client.responses.stream({ model: r.model, max_output_tokens: 400, input: 'script: parallel', tools: items }).finalResponse();
  const input = first.output.filter((item) => item.type === 'function_call').map((item) => ({ type: 'function_call_output', call_id: item.call_id, output: 'warm' }));
  same(input.length, 2);
  same((await respond('', { tools: items, input, previous_response_id: first.id })).output_text, 'Paris has 18 degrees, São Paulo 25.');
});
await check('structured', 'responses: JSON', async () => {
  const schema = { type: 'json_schema', name: 'report', schema: r.wanted, strict: true };
  for (const format of [schema, { type: 'json_object' }]) {
    same(JSON.parse((await respond('report', { text: { format } })).output_text), r.numbers);
    await raises(OpenAI.APIError, () => respond('hello', { text: { format } }));
  }
  const final = await client.responses.stream({ model: r.model, max_output_tokens: 400, input: 'script: report', text: { format: schema } }).finalResponse();
  same(JSON.parse(final.output_text), r.numbers);
});
await check('structured', 'responses: calls that must be', async () => {
  const one = { type: 'function', name: 'get_weather' };
  for (const tool_choice of ['required', one, { type: 'allowed_tools', mode: 'required', tools: [one] }]) {
    for (const list of [items, strictItems]) {
      const calls = (await respond('call', { tools: list, tool_choice })).output.filter((item) => item.type === 'function_call');
      same(calls.map((c) => JSON.parse(c.arguments)), [{ city: 'Paris', unit: 'celsius' }]);
    }
    await raises(OpenAI.APIError, () => respond('hello', { tools: items, tool_choice }));
  }
});
await check('responses', 'reasoning items', async () => {
  const got = await respond('think', { reasoning: { effort: 'medium' } });
  same(got.output.map((item) => item.type), ['reasoning', 'message']);
  holds(got.usage.output_tokens_details.reasoning_tokens > 0);
});
await check('responses', 'get, input items, delete', async () => {
  const made = await respond('hello');
  same((await client.responses.retrieve(made.id)).output_text, r.hello);
  same((await client.responses.inputItems.list(made.id)).data.map((item) => item.role), ['user']);
  await client.responses.delete(made.id);
  holds((await raises(OpenAI.NotFoundError, () => client.responses.retrieve(made.id))).message.includes(made.id));
});
await check('responses', 'cancel in the background', async () => {
  const made = await respond('long', { background: true, max_output_tokens: 8000 });
  holds(['queued', 'in_progress'].includes(made.status));
  same((await client.responses.cancel(made.id)).status, 'cancelled');
  await r.idle();
});
await check('errors', 'bad request', async () => {
  const error = await raises(OpenAI.BadRequestError, () => chat('hello', { temperature: 3 }));
  same([error.code, error.param, error.type], ['invalid_value', 'temperature', 'invalid_request_error']);
});
await check('errors', 'context length', async () => {
  same((await raises(OpenAI.BadRequestError, () => chat('', { messages: [{ role: 'user', content: r.tooLong }] }))).code, 'context_length_exceeded');
  same((await raises(OpenAI.BadRequestError, () => respond('', { input: r.tooLong }))).code, 'context_length_exceeded');
});
await check('errors', 'not found', async () => {
  same((await raises(OpenAI.NotFoundError, () => chat('hello', { model: 'no-such-model' }))).code, 'model_not_found');
});
await check('errors', 'authentication', async () => {
  const wrong = new OpenAI({ baseURL: r.url + '/v1', apiKey: 'wrong', maxRetries: 0 });
  same((await raises(OpenAI.AuthenticationError, () => wrong.models.list())).code, 'invalid_api_key');
});
await check('errors', 'full queue', async () => {
  const error = await raises(OpenAI.APIError, () => chat('full'));
  holds([429, 503].includes(error.status) && error.headers.get('retry-after'));
});
await check('errors', 'engine fails in a stream', async () => {
  let chunks = 0;
  await raises(OpenAI.APIError, async () => {
    for await (const _ of await chat('fail', { stream: true })) chunks++;
  });
  holds(chunks > 0);
});
await check('tokens', 'usage, streamed as whole', async () => {
  const whole = (await chat('count')).usage;
  const streamed = (await stream('count')).usage;
  same(whole.total_tokens, whole.prompt_tokens + whole.completion_tokens);
  same([streamed.prompt_tokens, streamed.completion_tokens], [whole.prompt_tokens, whole.completion_tokens]);
});
await check('models', 'list and get', async () => {
  const ids = [];
  for await (const m of await client.models.list()) ids.push(m.id);
  same(ids, [r.model]);
  same((await client.models.retrieve(r.model)).id, r.model);
});
await check('cancel', 'the server stops when the client leaves', async () => {
  for (const ask of [() => chat('long', { stream: true, max_tokens: 8000 }), () => respond('long', { stream: true, max_output_tokens: 8000 })]) {
    const events = await ask();
    let n = 0;
    for await (const _ of events) {
      if (++n < 5) continue;
      holds((await r.running()) > 0);
      break;
    }
    events.controller.abort();
    await r.idle();
  }
});
end();
