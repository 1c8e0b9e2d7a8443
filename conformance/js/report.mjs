// Checks of a client against a server that follows a script: each is one line, and a failed one makes the program end with status 1.
//
// A program needs ATLAS_SCRIPTED, ATLAS_KEY and ATLAS_MODEL (tools/scripted.sh sets them). ATLAS_RESULTS names a file that gets the lines too.
import assert from 'node:assert/strict';
import { appendFileSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

export const url = process.env.ATLAS_SCRIPTED;
export const key = process.env.ATLAS_KEY;
export const model = process.env.ATLAS_MODEL;

// What the scripts write.
export const hello = 'Hello from Atlas: naïve café, 你好, 👩🏽‍💻.';
export const count = 'one two three four five six seven eight nine ten';
export const thought = 'The user greets. I greet back.';
export const greeted = 'Good day to you.';
export const city = 'São Paulo "SP" {}';
export const weather = 'It is 18 degrees in Paris.';
export const tooLong = 'word '.repeat(40_000);

export const schema = { type: 'object', properties: { city: { type: 'string' }, unit: { type: 'string' } }, required: ['city'] };
export const nothing = { type: 'object', properties: {} };
export const strict = { type: 'object', properties: { city: { type: 'string' }, unit: { enum: ['celsius', 'kelvin'] } }, required: ['city', 'unit'], additionalProperties: false };
export const wanted = { type: 'object', properties: { city: { type: 'string' }, degrees: { type: 'integer' } }, required: ['city', 'degrees'], additionalProperties: false };
export const numbers = { city: 'Paris', degrees: 18 }; // what the script "report" writes

export const same = assert.deepEqual;
export const holds = assert.ok;

// raises gives the error of a kind that a promise ends with.
export async function raises(kind, work) {
  try {
    await work();
  } catch (error) {
    assert.ok(error instanceof kind, `${error}`);
    return error;
  }
  assert.fail(`no ${kind.name} was raised`);
}

// report gives the check of a client, and what ends its program. packages are those that it is made of.
export function report(client, ...packages) {
  let passed = 0;
  let failed = 0;
  const line = (...columns) => {
    const text = [client, ...columns].join('\t');
    console.log(text);
    if (process.env.ATLAS_RESULTS) appendFileSync(process.env.ATLAS_RESULTS, text + '\n');
  };
  for (const name of packages) {
    const about = readFileSync(join(dirname(process.argv[1]), 'node_modules', name, 'package.json'));
    line('version', `${name} ${JSON.parse(about).version}`, '');
  }
  const check = async (feature, name, work) => {
    let verdict = 'ok';
    try {
      await work();
      passed++;
    } catch (error) {
      verdict = 'FAIL';
      failed++;
      console.error(error);
    }
    line(feature, name, verdict);
  };
  const end = () => {
    console.log(`${client}: ${passed} of ${passed + failed} checks passed`);
    process.exit(failed ? 1 : 0);
  };
  return { check, end };
}

// running is how many requests the server works on.
export async function running() {
  const answer = await fetch(url + '/metrics', { headers: { authorization: 'Bearer ' + key } });
  const line = (await answer.text()).split('\n').find((line) => line.startsWith('vllm:num_requests_running'));
  return Number(line.slice(line.lastIndexOf(' ')));
}

// idle waits until the server works on nothing.
export async function idle() {
  for (let i = 0; i < 100; i++) {
    if ((await running()) === 0) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.fail('requests still run long after the client left');
}
