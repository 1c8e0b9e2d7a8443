// Vercel's AI SDK, with three of its providers, against a server that follows a script.
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { APICallError, generateText, stepCountIs, streamText, tool } from 'ai';
import { z } from 'zod';
import * as r from '../js/report.mjs';
import { same, holds, raises } from '../js/report.mjs';

const { check, end } = r.report('AI SDK (JavaScript)', 'ai', '@ai-sdk/openai', '@ai-sdk/openai-compatible', '@ai-sdk/anthropic');
const baseURL = r.url + '/v1';
const openai = createOpenAI({ baseURL, apiKey: r.key });
const models = {
  'openai chat': [openai.chat(r.model), {}],
  'openai responses': [openai.responses(r.model), { openai: { reasoningEffort: 'medium', forceReasoning: true, reasoningSummary: 'auto' } }],
  'openai-compatible': [createOpenAICompatible({ name: 'atlas', baseURL, apiKey: r.key, includeUsage: true }).chatModel(r.model), {}],
  anthropic: [createAnthropic({ baseURL, apiKey: r.key })(r.model), { anthropic: { thinking: { type: 'enabled', budgetTokens: 1024 } } }],
};

for (const [name, [model, providerOptions]] of Object.entries(models)) {
  let cities = [];
  const tools = {
    get_weather: tool({
      description: 'The weather of a city.',
      inputSchema: z.object({ city: z.string(), unit: z.string().optional() }),
      execute: async ({ city }) => {
        cities.push(city);
        return '18 degrees';
      },
    }),
  };
  const asked = (script, more) => ({ model, providerOptions, prompt: 'Please.\nscript: ' + script, maxOutputTokens: 2000, maxRetries: 0, ...more });
  const whole = async (script, more) => {
    const got = await generateText(asked(script, more));
    return { text: got.text, finish: got.finishReason, thoughts: got.reasoningText, usage: got.usage };
  };
  const streamed = async (script, more) => {
    let failure;
    const got = streamText(asked(script, { onError: ({ error }) => (failure = error), ...more }));
    await got.consumeStream();
    if (failure) throw failure;
    return { text: await got.text, finish: await got.finishReason, thoughts: await got.reasoningText, usage: await got.usage };
  };
  for (const [how, ask] of [['whole', whole], ['streamed', streamed]]) {
    await check(how === 'whole' ? 'chat' : 'stream', `${name}, ${how}`, async () => {
      const got = await ask('hello');
      same([got.text, got.finish], [r.hello, 'stop']);
      holds(got.usage.inputTokens > 0 && got.usage.outputTokens > 0, JSON.stringify(got.usage));
    });
    await check('tools', `round trip, ${name}, ${how}`, async () => {
      cities = [];
      const got = await ask('weather', { tools, stopWhen: stepCountIs(3) });
      same([got.text, got.finish, cities], [r.weather, 'stop', ['Paris']]);
    });
    await check('parallel calls', `${name}, ${how}`, async () => {
      cities = [];
      const got = await ask('parallel', { tools, stopWhen: stepCountIs(3) });
      same([got.text, cities.toSorted()], ['Paris has 18 degrees, São Paulo 25.', ['Paris', r.city]]);
    });
    if (name !== 'openai chat') { // that one has no place for thoughts
      await check('reasoning', `${name}, ${how}`, async () => {
        const got = await ask('think');
        same([got.text.trim(), got.thoughts?.trim()], [r.greeted, r.thought]);
      });
    }
  }
  await check('errors', `context length, ${name}`, async () => {
    const error = await raises(APICallError, () => generateText(asked('', { prompt: r.tooLong })));
    holds(error.statusCode === 400 && /maximum context length|prompt is too long/.test(error.message), error.message);
  });
  await check('cancel', name, async () => {
    const controller = new AbortController();
    const got = streamText(asked('long', { abortSignal: controller.signal, onError: () => {}, maxOutputTokens: 8000 }));
    let n = 0;
    for await (const _ of got.textStream) if (++n === 5) controller.abort();
    await r.idle();
  });
}
end();
