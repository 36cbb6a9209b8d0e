// Every check of OpenAI's SDK for Node, as openai_driver.py has them for Python. The stage comes on
// standard input; the folder that holds the SDK is the only argument.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join } from "node:path";
import { text } from "node:stream/consumers";

const { default: OpenAI } = createRequire(join(process.argv[2], "x.js"))("openai");
const stage = JSON.parse(await text(process.stdin));
const TEXT = "The toll is paid, señor: 5 €\u2028[DONE]";
const TOOL = {
  type: "function",
  function: {
    name: "get_weather",
    strict: true,
    parameters: {
      type: "object",
      properties: { city: { type: "string" } },
      required: ["city"],
      additionalProperties: false,
    },
  },
};

const scripted = (script) => JSON.stringify({ script });
const asking = (content, rest = {}) => ({
  model: stage.model,
  messages: [{ role: "user", content }],
  ...rest,
});
const tokens = (content) => content.split(/\s+/).length;

let check = "";
let requests = null;
const client = (options = {}) =>
  new OpenAI({
    apiKey: stage.keys.sound,
    baseURL: `${stage.base_url}/v1`,
    maxRetries: 0,
    defaultHeaders: { "X-Client-Request-Id": check },
    ...options,
  });

const administration = () =>
  client({
    apiKey: stage.keys.admin,
    adminAPIKey: stage.keys.admin,
    baseURL: `${stage.base_url}/manage/v1`,
  }).admin.organization;

async function all(stream) {
  const found = [];
  for await (const item of stream) found.push(item);
  return found;
}

function areCalls(calls) {
  assert.deepEqual(calls.map((call) => call.id), ["call_0", "call_1", "call_2"]);
  for (const call of calls) {
    assert.equal(call.function.name, "get_weather");
    assert.deepEqual(Object.keys(JSON.parse(call.function.arguments)), ["city"]);
  }
}

const checks = {
  "chat.create": async () => {
    const asked = scripted({ text: TEXT });
    const answer = await client().chat.completions.create(asking(asked));
    assert.equal(answer.choices[0].message.content, TEXT);
    assert.equal(answer.choices[0].finish_reason, "stop");
    assert.equal(answer.usage.prompt_tokens, 1 + tokens(asked));
    assert.equal(answer.usage.completion_tokens, tokens(TEXT));
    assert.match(answer._request_id, /^[0-9a-f-]{36}$/);
  },
  "chat.stream": async () => {
    const rest = { stream: true, stream_options: { include_usage: true } };
    const asked = asking(scripted({ text: TEXT }), rest);
    const chunks = await all(await client().chat.completions.create(asked));
    const said = chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join("");
    assert.equal(said, TEXT);
    assert.equal(chunks.at(-1).usage.completion_tokens, tokens(TEXT));
  },
  "chat.helper": async () => {
    const stream = client().chat.completions.stream(asking(scripted({ text: TEXT }), { n: 2 }));
    const final = await stream.finalChatCompletion();
    assert.deepEqual(final.choices.map((choice) => choice.message.content), [TEXT, TEXT]);
  },
  "chat.tools": async () => {
    const asked = asking(scripted({ tool_calls: 3 }), { tools: [TOOL] });
    const { message } = (await client().chat.completions.create(asked)).choices[0];
    areCalls(message.tool_calls);
    const results = message.tool_calls.map((call) => ({
      role: "tool",
      tool_call_id: call.id,
      content: "Rain.",
    }));
    const last = { role: "user", content: scripted({ text: TEXT }) };
    const messages = [...asked.messages, message, ...results, last];
    const answer = await client().chat.completions.create({ ...asked, messages });
    assert.equal(answer.choices[0].message.content, TEXT);
  },
  "chat.tools_streamed": async () => {
    const asked = asking(scripted({ tool_calls: 3 }), { tools: [TOOL] });
    const final = await client().chat.completions.stream(asked).finalChatCompletion();
    areCalls(final.choices[0].message.tool_calls);
  },
  "chat.taken_back": async () => {
    const { completions } = client().chat;
    const calls = [{ name: "get_weather", extra_content: { google: { thought_signature: "c2ln" } } }];
    for (const [script, rest] of [
      [{ text: TEXT }, { web_search_options: {}, reasoning_effort: "low" }],
      [{ refuses: true }, {}],
      [{ tool_calls: 2 }, { tools: [TOOL] }],
      [{ calls }, { tools: [TOOL] }],
      [{}, { functions: [TOOL.function], function_call: { name: "get_weather" } }],
    ]) {
      const asked = asking(scripted(script), rest);
      const whole = [await completions.create(asked), await completions.parse(asked)];
      const said = whole.map((answer) => answer.choices[0].message);
      for (const message of [...said, await completions.stream(asked).finalMessage()]) {
        const results = (message.tool_calls ?? []).map(({ id }) => ({
          role: "tool",
          tool_call_id: id,
          content: "Rain.",
        }));
        const last = { role: "user", content: scripted({ text: TEXT }) };
        const messages = [...asked.messages, message, ...results, last];
        const answer = await completions.create(asking("", { messages }));
        assert.equal(answer.choices[0].message.content, TEXT);
      }
    }
  },
  "responses.taken_back": async () => {
    const { responses } = client();
    const tools = [{ type: "function", ...TOOL.function }];
    for (const asked of [
      { model: stage.model, input: scripted({ text: TEXT, reasoning_tokens: 3 }) },
      { model: stage.model, input: scripted({ tool_calls: 2 }), tools },
    ]) {
      const found = [await responses.create(asked), await responses.parse(asked)];
      for (const { output } of [...found, await responses.stream(asked).finalResponse()]) {
        const results = output
          .filter((item) => item.type === "function_call")
          .map(({ call_id }) => ({ type: "function_call_output", call_id, output: "Rain." }));
        const input = [...output, ...results, { role: "user", content: scripted({ text: TEXT }) }];
        assert.equal((await responses.create({ ...asked, input })).output_text, TEXT);
      }
    }
  },
  "chat.breaks_mid_stream": async () => {
    const script = scripted({ error: { message: "out of memory" }, error_after_events: 3 });
    const asked = asking(script, { stream: true });
    const stream = await client({ maxRetries: 2 }).chat.completions.create(asked);
    await assert.rejects(all(stream), (error) => {
      assert(error instanceof OpenAI.APIError);
      assert.deepEqual([error.code, error.type], ["backend_error", "server_error"]);
      return true;
    });
    requests = 1;
  },
  "responses.create": async () => {
    const asked = { model: stage.model, input: scripted({ text: TEXT }) };
    const answer = await client().responses.create(asked);
    assert.equal(answer.status, "completed");
    assert.equal(answer.output_text, TEXT);
  },
  "responses.stream": async () => {
    const asked = { model: stage.model, input: scripted({ text: TEXT }) };
    const final = await client().responses.stream(asked).finalResponse();
    assert.equal(final.output_text, TEXT);
  },
  "models.retrieve": async () => {
    const model = await client().models.retrieve(stage.model);
    assert.deepEqual([model.id, model.owned_by], [stage.model, stage.owned_by]);
  },
  "models.list": async () => {
    const models = await all(client().models.list());
    assert.deepEqual(models.map((model) => model.id).sort(), [...stage.models].sort());
  },
  "admin.keys": async () => {
    const keys = administration().adminAPIKeys;
    const made = await keys.create({ name: check });
    assert.equal((await keys.retrieve(made.id)).name, check);
    assert((await all(keys.list({ limit: 1 }))).some((key) => key.id === made.id));
    assert.equal((await keys.delete(made.id)).deleted, true);
    await assert.rejects(keys.retrieve(made.id), OpenAI.NotFoundError);
  },
  "admin.projects": async () => {
    const projects = administration().projects;
    const made = await projects.create({ name: check });
    assert.equal((await projects.update(made.id, { name: "renamed" })).name, "renamed");
    assert.equal((await projects.archive(made.id)).id, made.id);
    assert((await all(projects.list({ limit: 1 }))).some((each) => each.status === "archived"));
  },
  "admin.reports": async () => {
    const { adminAPIKeys, usage } = administration();
    const start_time = (await adminAPIKeys.create({ name: check })).created_at - 3600;
    assert.equal((await usage.costs({ start_time, group_by: ["line_item"] })).object, "page");
    const used = await usage.completions({ start_time, bucket_width: "1h", group_by: ["model"] });
    const results = used.data.flatMap((bucket) => bucket.results);
    assert(results.some((result) => result.num_model_requests > 0 && result.input_tokens > 0));
  },
};

const stall = { how: "stall", after: "request" };
const policies = { policy_ids: [stage.paused_policy] };
const tooLong = { error: { message: "prompt is too long: 4031 tokens > 2048 maximum" } };
// Status, class, code, what is asked, the client's options, and how many requests that makes.
const failures = [
  [400, "BadRequestError", "unknown_parameter", asking("Hi", { wish: 1 })],
  [400, "BadRequestError", "context_length_exceeded", asking(scripted({ status: 400, body: tooLong }))],
  [401, "AuthenticationError", "invalid_api_key", asking("Hi"), { apiKey: stage.keys.unknown }],
  [402, "APIError", "credit_balance_exhausted", asking("Hi"), { apiKey: stage.keys.poor }],
  [403, "PermissionDeniedError", "insufficient_permissions", asking("Hi"), { apiKey: stage.keys.reader }],
  [404, "NotFoundError", "model_not_found", asking("Hi", { model: stage.unknown_model })],
  [413, "APIError", "request_too_large", asking("x".repeat(100_000))],
  [422, "UnprocessableEntityError", "provider_validation_failed", asking(scripted({ status: 400 }))],
  [
    ...[500, "InternalServerError", "server_error", asking("Hi", policies)],
    ...[{ apiKey: stage.keys.broken, baseURL: `${stage.broken_base_url}/v1`, maxRetries: 1 }, 2],
  ],
  [501, "InternalServerError", "unsupported_parameter", asking("Hi", { model: stage.plain_model, temperature: 0.5 })],
  [502, "InternalServerError", "backend_error", asking(scripted({ status: 500 })), { maxRetries: 1 }, 2],
  [503, "InternalServerError", "server_is_overloaded", asking(scripted({ status: 429 })), { maxRetries: 1 }, 2],
  [504, "InternalServerError", "deadline_exceeded", asking(scripted({ cut: stall }), { model: stage.hasty_model })],
];
const surfaces = {
  chat: (opened, asked) => opened.chat.completions.create(asked),
  async responses(opened, { messages, ...rest }) {
    const answer = await opened.responses.create({ input: messages[0].content, ...rest });
    return rest.stream ? all(answer) : answer;
  },
};

// Streams are refused before the first byte, but responses say in an event that the prompt is too
// long. Waiting for retries is proved without streams.
function fails(surface, stream, [status, kind, code, asked, options = {}, expected = 1]) {
  return async () => {
    const opened = client({ maxRetries: 2, ...options, ...(stream ? { maxRetries: 0 } : {}) });
    const isEvent = stream && surface === "responses" && code === "context_length_exceeded";
    const expectedError = isEvent ? [undefined, "APIError", code] : [status, kind, code];
    await assert.rejects(surfaces[surface](opened, { ...asked, stream }), (error) => {
      assert.deepEqual([error.status, error.constructor.name, error.code], expectedError);
      assert.equal(error.requestID, error.error.request_id);
      return true;
    });
    requests = stream ? 1 : expected;
  };
}

for (const surface of Object.keys(surfaces)) {
  for (const stream of [false, true]) {
    for (const failure of failures) {
      const name = `${surface}.${stream ? "stream." : ""}${failure[2]}`;
      checks[name] = fails(surface, stream, failure);
    }
  }
}

for (const [name, run] of Object.entries(checks)) {
  check = `node.${name}`;
  requests = null;
  let fault = null;
  try {
    await run();
  } catch (error) {
    fault = `${error.stack}`;
  }
  console.log(JSON.stringify({ check, fault, requests }));
}
console.log(JSON.stringify({ checks: Object.keys(checks).length }));
