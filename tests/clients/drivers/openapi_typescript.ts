// Calls with the types that openapi-typescript generates. Prints what they gave as JSON.
import createClient from "openapi-fetch";
import type { paths } from "./client/schema";

type Variable = "BASE_URL" | "KEY" | "ADMIN_KEY" | "MODEL" | "PROJECT";
declare const process: { env: Record<Variable, string> };

const { BASE_URL, KEY, ADMIN_KEY, MODEL: model, PROJECT } = process.env;
const clientOf = (key: string) =>
  createClient<paths>({ baseUrl: BASE_URL, headers: { Authorization: `Bearer ${key}` } });
const customer = clientOf(KEY);
const admin = clientOf(ADMIN_KEY);

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
  return whole(await customer.POST("/v1/chat/completions", { body })).choices[0]?.message.content;
}

async function tools() {
  const weather = {
    type: "function",
    function: { name: "get_weather", parameters: { type: "object" } },
  };
  const answer = await customer.POST("/v1/chat/completions", {
    body: {
      model,
      messages: [{ role: "user", content: "What is the weather?" }],
      tools: [weather],
      tool_choice: "auto",
    },
  });
  const called = whole(answer).choices[0]?.message.tool_calls?.[0];
  return (called?.function as { name: string }).name;
}

async function responses() {
  const answer = await customer.POST("/v1/responses", { body: { model, input: "Say it." } });
  return (whole(answer).output[0]?.content as { text: string }[])[0]?.text;
}

async function count() {
  const messages = [{ role: "user", content: "How much is it?" }];
  const answer = await customer.POST("/v1/messages/count_tokens", { body: { model, messages } });
  return have(answer).input_tokens > 0;
}

async function models() {
  const found = have(await customer.GET("/v1/models"));
  const params = { path: { model } };
  const one = have(await customer.GET("/v1/models/{model}", { params }));
  return [one.id, found.data.some((each) => each.id === one.id)];
}

async function policies() {
  const header = { "Idempotency-Key": crypto.randomUUID() };
  const made = have(
    await admin.POST("/v1/organization/policies", {
      params: { header },
      body: { name: "Names", rule: "Does the text name a person?" },
    }),
  );
  const params = { path: { policy_id: made.id } };
  const body = { revision: made.revision, mode: "enforcing" as const };
  const edited = have(
    await admin.PATCH("/v1/organization/policies/{policy_id}", { params, body }),
  );
  const stale = await admin.PATCH("/v1/organization/policies/{policy_id}", { params, body });
  const published = have(
    await admin.POST("/manage/v1/organization/policies/{policy_id}/publish", {
      params,
      body: { revision: edited.revision, refuses_until_judged: true },
    }),
  );
  const paused = have(
    await admin.POST("/v1/organization/policies/{policy_id}/pause", {
      params,
      body: { revision: published.revision },
    }),
  );
  const code = stale.error?.error.code;
  return [made.state, edited.revision, code, published.state, paused.state];
}

async function keys() {
  const header = { "Idempotency-Key": crypto.randomUUID() };
  const created = () =>
    admin.POST("/v1/organization/projects/{project_id}/api_keys", {
      params: { header, path: { project_id: PROJECT } },
      body: { name: "search" },
    });
  const first = have(await created());
  const again = have(await created());
  return [first.id === again.id, first.value === again.value];
}

async function costs() {
  const start_time = Math.floor(Date.now() / 1000) - 8 * 86_400;
  const of = async (page?: string) => {
    const query = page === undefined ? { start_time } : { start_time, page };
    return have(await admin.GET("/v1/organization/costs", { params: { query } }));
  };
  const first = await of();
  const second = await of(first.next_page ?? "");
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
