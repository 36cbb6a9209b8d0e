// Calls of the client that @hey-api/openapi-ts generates. Prints what they gave as JSON.
import { client } from "./client/client.gen";
import * as sdk from "./client/sdk.gen";

type Variable = "BASE_URL" | "KEY" | "ADMIN_KEY" | "MODEL" | "PROJECT";
declare const process: { env: Record<Variable, string> };

const { BASE_URL, KEY, ADMIN_KEY, MODEL: model, PROJECT } = process.env;
client.setConfig({ baseUrl: BASE_URL });
const customer = { auth: () => KEY };
const admin = { auth: () => ADMIN_KEY };

function have<T>(answer: { data?: T; error?: unknown }): T {
  if (answer.data === undefined) throw new Error(JSON.stringify(answer.error));
  return answer.data;
}

/** An answer that is not streamed: a stream has the type of a text. */
function whole<T>(answer: { data?: T | string; error?: unknown }): T {
  const data = have(answer);
  if (typeof data === "string") throw new Error("the answer was streamed");
  return data;
}

async function chat() {
  const body = { model, messages: [{ role: "user" as const, content: "Say it." }] };
  const made = whole(await sdk.createChatCompletion({ ...customer, body }));
  return made.choices[0]?.message.content;
}

async function tools() {
  const weather = {
    type: "function",
    function: { name: "get_weather", parameters: { type: "object" } },
  };
  const made = whole(
    await sdk.createChatCompletion({
      ...customer,
      body: {
        model,
        messages: [{ role: "user", content: "What is the weather?" }],
        tools: [weather],
        tool_choice: "auto",
      },
    }),
  );
  return (made.choices[0]?.message.tool_calls?.[0]?.function as { name: string }).name;
}

async function responses() {
  const made = whole(await sdk.createResponse({ ...customer, body: { model, input: "Say it." } }));
  return (made.output[0]?.content as { text: string }[])[0]?.text;
}

async function count() {
  const messages = [{ role: "user", content: "How much is it?" }];
  return have(await sdk.countTokens({ ...customer, body: { model, messages } })).input_tokens > 0;
}

async function models() {
  const found = have(await sdk.listModels(customer));
  const one = have(await sdk.retrieveModel({ ...customer, path: { model } }));
  return [one.id, found.data.some((each) => each.id === one.id)];
}

async function policies() {
  const headers = { "Idempotency-Key": crypto.randomUUID() };
  const draft = { name: "Names", rule: "Does the text name a person?" };
  const made = have(await sdk.createPolicy({ ...admin, headers, body: draft }));
  const path = { policy_id: made.id };
  const body = { revision: made.revision, mode: "enforcing" as const };
  const edited = have(await sdk.editPolicy({ ...admin, path, body }));
  const stale = await sdk.editPolicy({ ...admin, path, body });
  const publication = { revision: edited.revision, refuses_until_judged: true };
  const published = have(await sdk.publishPolicy({ ...admin, path, body: publication }));
  const paused = have(
    await sdk.pausePolicy({ ...admin, path, body: { revision: published.revision } }),
  );
  const code = stale.error?.error.code;
  return [made.state, edited.revision, code, published.state, paused.state];
}

async function keys() {
  const headers = { "Idempotency-Key": crypto.randomUUID() };
  const path = { project_id: PROJECT };
  const created = () =>
    sdk.createProjectKey({ ...admin, headers, path, body: { name: "search" } });
  const first = have(await created());
  const again = have(await created());
  return [first.id === again.id, first.value === again.value];
}

async function costs() {
  const start_time = Math.floor(Date.now() / 1000) - 8 * 86_400;
  const first = have(await sdk.reportCosts({ ...admin, query: { start_time } }));
  const page = first.next_page ?? "";
  const second = have(await sdk.reportCosts({ ...admin, query: { start_time, page } }));
  return [first.data.length, first.has_more, second.has_more];
}

async function main() {
  const found: Record<string, unknown> = {};
  for (const call of [chat, tools, responses, count, models, policies, keys, costs]) {
    found[call.name] = await call();
  }
  console.log(JSON.stringify(found));
}

void main();
