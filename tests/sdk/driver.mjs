// Calls the library for Node as the tests ask, one JSON line a call, and writes one line for each outcome.
import { createInterface } from "node:readline";
import { inspect } from "node:util";
import * as library from "../../sdk/node/sluice.js";

async function outcome({ client, method, args }) {
  if (!client) return library[method](...args);
  const sluice = new library.Sluice(client);
  if (method === "inspect") return [inspect(sluice, { showHidden: true, depth: 9 }), JSON.stringify(sluice), String(sluice)];
  const called = sluice[method](...args);
  return typeof called.next === "function" ? Array.fromAsync?.(called) ?? collected(called) : called;
}

async function collected(pages) {
  const items = [];
  for await (const item of pages) items.push(item);
  return items;
}

for await (const line of createInterface({ input: process.stdin })) {
  let answer;
  try {
    answer = { result: (await outcome(JSON.parse(line))) ?? null };
  } catch (error) {
    answer = { error: { ...error, kind: error.constructor.name, text: error.message, trace: inspect(error) } };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
