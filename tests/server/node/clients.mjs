// The helpers of openai-node, Anthropic's SDK and the AI SDK; fails at the first departure.
import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, Output, stepCountIs, streamText, tool } from "ai";
import OpenAI from "openai";
import { zodResponseFormat, zodTextFormat, zodResponsesFunction } from "openai/helpers/zod";
import { z } from "zod";

const { MODEL: model, OPENAI_BASE_URL: baseURL, OPENAI_API_KEY: apiKey } = process.env;
const Person = z.object({ name: z.string(), age: z.number() });
const NARA = { name: "Nara", age: 1.5 };
const said = (content) => [{ role: "user", content }];
const parameters = { type: "object", properties: { city: { type: "string" } } };
const weather = ({ city }) => `rain in ${city}`;
const RAIN = "The tool says rain in Nara.";

export async function openai() {
  const client = new OpenAI();
  const chat = client.chat.completions;
  const parsed = await chat.parse({ model, messages: said("Who?"), response_format: zodResponseFormat(Person, "person") });
  assert.deepEqual(parsed.choices[0].message.parsed, NARA);
  assert.equal(await chat.stream({ model, messages: said("a") }).finalContent(), "Read: a");
  const f = { name: "get_weather", description: "Tell the weather.", parameters, function: weather, parse: JSON.parse };
  for (const stream of [false, true]) {
    const runner = chat.runTools({ model, messages: said("Weather?"), tools: [{ type: "function", function: f }], stream });
    assert.equal(await runner.finalContent(), RAIN);
  }
  const typed = await client.responses.parse({ model, input: "Who?", text: { format: zodTextFormat(Person, "person") } });
  assert.deepEqual(typed.output_parsed, NARA);
  const first = await client.responses.stream({ model, input: "a" }).finalResponse();
  const second = await client.responses.create({ model, input: "b", previous_response_id: first.id });
  assert.equal(second.output_text, "Read: a | b");
  const tools = [zodResponsesFunction({ name: "get_weather", parameters: z.object({ city: z.string() }) })];
  const called = await client.responses.parse({ model, input: "Weather?", tools });
  assert.deepEqual(called.output[0].parsed_arguments, { city: "Nara" });
  const names = [];
  for await (const each of client.models.list()) names.push(each.id);
  assert(names.includes(model));
  await assert.rejects(chat.create({ model, messages: said("status 400") }), OpenAI.BadRequestError);
}

export async function anthropic() {
  const client = new Anthropic();
  const stream = client.messages.stream({ model, max_tokens: 99, messages: said("a") });
  assert.equal(await stream.finalText(), "Read: a");
  const run = async ({ city }) => `rain in ${city}`;
  const tools = [{ name: "get_weather", description: "Tell the weather.", input_schema: parameters, run, parse: (x) => x }];
  const last = await client.beta.messages.toolRunner({ model, max_tokens: 99, messages: said("Weather?"), tools });
  assert.equal(last.content[0].text, RAIN);
  await assert.rejects(client.messages.create({ model, max_tokens: 9, messages: said("status 400") }), Anthropic.BadRequestError);
}

export async function ai() {
  const provider = createOpenAI();
  const compatible = createOpenAICompatible({ name: "taiwa", baseURL, apiKey, supportsStructuredOutputs: true });
  const tools = { get_weather: tool({ description: "Tell the weather.", inputSchema: z.object({ city: z.string() }), execute: weather }) };
  for (const chosen of [provider(model), provider.chat(model), compatible(model)]) {
    assert.equal((await generateText({ model: chosen, prompt: "a" })).text, "Read: a");
    const messages = [{ role: "user", content: "a" }, { role: "assistant", content: "Read: a" }, { role: "user", content: "b" }];
    assert.equal((await generateText({ model: chosen, messages })).text, "Read: a | b");
    const looped = { model: chosen, prompt: "Weather?", tools, stopWhen: stepCountIs(3) };
    assert.equal((await generateText(looped)).text, RAIN);
    assert.equal(await streamText(looped).text, RAIN);
    const typed = { model: chosen, prompt: "Who?", output: Output.object({ schema: Person }) };
    assert.deepEqual((await generateText(typed)).output, NARA);
    const { partialOutputStream, output } = streamText(typed);
    for await (const _ of partialOutputStream);
    assert.deepEqual(await output, NARA);
    await assert.rejects(generateText({ model: chosen, prompt: "status 400" }), /as you wish/);
  }
}

// The statuses with which requests of default clients end, as `[[wire, text], …]`; the clients do not wait before they repeat.
export async function fail(requests) {
  const openai = new OpenAI(), anthropic = new Anthropic();
  openai.calculateDefaultRetryTimeoutMillis = anthropic.calculateDefaultRetryTimeoutMillis = () => 0;
  const schema = { type: "object", properties: { cups: { type: "integer" } }, required: ["cups"] };
  const format = { type: "json_schema", name: "order", schema };
  const ask = {
    chat: (text) =>
      openai.chat.completions.create({ model, messages: said(text), response_format: { type: "json_schema", json_schema: format } }),
    responses: (input) => openai.responses.create({ model, input, text: { format } }),
    messages: (text) => anthropic.messages.create({ model, max_tokens: 9, messages: said(text), output_config: { format: { type: "json_schema", schema } } }),
  };
  const statuses = [];
  for (const [wire, text] of JSON.parse(requests)) await assert.rejects(ask[wire](text), (error) => statuses.push(error.status) > 0);
  console.log(JSON.stringify(statuses));
}

const [name, ...rest] = process.argv.slice(2);
await { openai, anthropic, ai, fail }[name](...rest);
