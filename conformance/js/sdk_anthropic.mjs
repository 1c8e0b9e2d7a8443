// Anthropic's JavaScript client, unmodified, against a server that follows a script.
import Anthropic from '@anthropic-ai/sdk';
import * as r from './report.mjs';
import { same, holds, raises } from './report.mjs';

const { check, end } = r.report('anthropic (JavaScript)', '@anthropic-ai/sdk');
const client = new Anthropic({ baseURL: r.url, apiKey: r.key, maxRetries: 0 });

const tools = [
  { name: 'get_weather', description: 'The weather of a city.', input_schema: r.schema },
  { name: 'get_time', input_schema: r.nothing },
];
const strict = [{ name: 'get_weather', input_schema: r.strict, strict: true }, tools[1]];
const wanted = (schema) => ({ format: { type: 'json_schema', schema } });
const asked = (script, fields) => ({ model: r.model, max_tokens: 400, system: 'You are brief.', messages: [{ role: 'user', content: 'Please.\nscript: ' + script }], ...fields });
const whole = (script, fields) => client.messages.create(asked(script, fields));
const streamed = (script, fields) => client.messages.stream(asked(script, fields)).finalMessage();
const blocks = (message, type) => message.content.filter((block) => block.type === type);
const text = (message) => blocks(message, 'text').map((block) => block.text).join('').trim();
// behind continues a conversation with a message and the result of its call.
const behind = (script, message) => [
  ...asked(script).messages,
  { role: 'assistant', content: message.content },
  { role: 'user', content: [{ type: 'tool_result', tool_use_id: blocks(message, 'tool_use')[0].id, content: '18 degrees' }] },
];

for (const [how, ask] of [['whole', whole], ['streamed', streamed]]) {
  const feature = how === 'whole' ? 'chat' : 'stream';
  await check(feature, 'answer, ' + how, async () => {
    const got = await ask('hello');
    same([text(got), got.stop_reason, got.role, got.type], [r.hello, 'end_turn', 'assistant', 'message']);
    holds(got.id.startsWith('msg_') && got.usage.output_tokens > 0);
  });
  await check(feature, 'limit and stop sequence, ' + how, async () => {
    same((await ask('hello', { max_tokens: 3 })).stop_reason, 'max_tokens');
    const got = await ask('count', { stop_sequences: [' four'] });
    same([text(got), got.stop_reason, got.stop_sequence], ['one two three', 'stop_sequence', ' four']);
  });
  await check('tools', 'round trip, ' + how, async () => {
    const got = await ask('call', { tools });
    same([got.stop_reason, blocks(got, 'tool_use').map((c) => [c.name, c.input])], ['tool_use', [['get_weather', { city: 'Paris', unit: 'celsius' }]]]);
    same(text(await ask('call', { tools, messages: behind('call', got) })), r.weather);
  });
  await check('parallel calls', how, async () => {
    same(blocks(await ask('parallel', { tools }), 'tool_use').map((c) => c.input.city), ['Paris', r.city]);
    same(blocks(await ask('parallel', { tools, tool_choice: { type: 'auto', disable_parallel_tool_use: true } }), 'tool_use').length, 1);
  });
  await check('structured', 'JSON of a schema, ' + how, async () => {
    same(JSON.parse(text(await ask('report', { output_config: wanted(r.wanted) }))), r.numbers);
  });
  await check('structured', 'calls that must be, ' + how, async () => {
    for (const tool_choice of [{ type: 'any' }, { type: 'any', disable_parallel_tool_use: true }, { type: 'tool', name: 'get_weather' }]) {
      for (const list of [tools, strict]) {
        const got = await ask('call', { tools: list, tool_choice });
        same([got.stop_reason, blocks(got, 'tool_use').map((c) => c.input)], ['tool_use', [{ city: 'Paris', unit: 'celsius' }]]);
      }
    }
  });
  await check('structured', 'other answers cannot come, ' + how, async () => {
    await raises(Anthropic.APIError, () => ask('hello', { output_config: wanted(r.wanted) }));
    await raises(Anthropic.APIError, () => ask('hello', { tools, tool_choice: { type: 'any' } }));
    await raises(Anthropic.APIError, () => ask('noargs', { tools, tool_choice: { type: 'tool', name: 'get_weather' } }));
  });
  await check('tools', 'no arguments, unknown tool, ' + how, async () => {
    same(blocks(await ask('noargs', { tools }), 'tool_use')[0].input, {});
    holds(text(await ask('unknown', { tools })).includes('no_such_tool'));
  });
  await check('reasoning', 'thinking block comes back, ' + how, async () => {
    const fields = { tools, max_tokens: 2000, thinking: { type: 'enabled', budget_tokens: 1024 } };
    const got = await ask('weather', fields);
    same(got.content.map((b) => b.type), ['thinking', 'text', 'tool_use']);
    holds(got.content[0].thinking.includes('weather of Paris') && got.content[0].signature);
    same(text(await ask('weather', { ...fields, messages: behind('weather', got) })), r.weather);
  });
  await check('reasoning', 'off, ' + how, async () => {
    same((await ask('think', { thinking: { type: 'disabled' } })).content.map((b) => b.text), [r.greeted]);
  });
}
await check('structured', 'what cannot be held is refused', async () => {
  const error = await raises(Anthropic.BadRequestError, () => whole('report', { output_config: wanted({ type: 'string', pattern: '(' }) }));
  holds(error.message.includes('output_config.format.schema') && error.message.includes('pattern'), error.message);
});
await check('tokens', 'count_tokens is what a message is charged', async () => {
  const fields = { model: r.model, system: 'You are brief.', messages: asked('call').messages, tools };
  const u = (await whole('call', { tools })).usage;
  same((await client.messages.countTokens(fields)).input_tokens, u.input_tokens + (u.cache_read_input_tokens ?? 0) + (u.cache_creation_input_tokens ?? 0));
});
await check('models', 'list and get', async () => {
  const models = [];
  for await (const m of client.models.list()) models.push([m.id, m.type]);
  same(models, [[r.model, 'model']]);
  same((await client.models.retrieve(r.model)).type, 'model');
});
await check('errors', 'bad request', async () => {
  same((await raises(Anthropic.BadRequestError, () => whole('hello', { messages: [] }))).error.error.type, 'invalid_request_error');
});
await check('errors', 'context length', async () => {
  const error = await raises(Anthropic.BadRequestError, () => whole('', { messages: [{ role: 'user', content: r.tooLong }] }));
  holds(error.message.includes('prompt is too long'), error.message);
});
await check('errors', 'not found', async () => {
  same((await raises(Anthropic.NotFoundError, () => whole('hello', { model: 'no-such-model' }))).error.error.type, 'not_found_error');
});
await check('errors', 'authentication', async () => {
  const wrong = new Anthropic({ baseURL: r.url, apiKey: 'wrong', maxRetries: 0 });
  const error = await raises(Anthropic.AuthenticationError, () => wrong.messages.create(asked('hello')));
  same([error.error.type, error.error.error.type], ['error', 'authentication_error']);
});
await check('errors', 'full queue', async () => {
  const error = await raises(Anthropic.APIError, () => whole('full'));
  holds([429, 529].includes(error.status) && ['rate_limit_error', 'overloaded_error'].includes(error.error.error.type), error);
});
await check('errors', 'engine fails in a stream', async () => {
  const error = await raises(Anthropic.APIError, () => streamed('fail'));
  holds(error.message.includes('api_error'), error.message);
});
await check('cancel', 'the server stops when the client leaves', async () => {
  const events = client.messages.stream(asked('long', { max_tokens: 8000 }));
  let n = 0;
  for await (const _ of events) if (++n === 5) break;
  events.abort();
  await r.idle();
});
end();
