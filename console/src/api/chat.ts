/** One streamed answer of a model, piece by piece. */

import type { Api } from "./client";
import { EventReader } from "./events";
import { failureOf, isAbandoned, unreachable } from "./failure";
import type { components } from "./schema";

type ChatRequest = components["schemas"]["ChatRequest"];
type ChatChunk = components["schemas"]["ChatChunk"];

export type Usage = components["schemas"]["Usage"];

export type Piece =
  | { readonly kind: "began"; readonly requestId: string }
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "reasoning"; readonly text: string }
  | { readonly kind: "finished"; readonly reason: string }
  | { readonly kind: "usage"; readonly usage: Usage };

const DONE = "[DONE]";

/** A failure before the first byte or after it is thrown alike. */
export async function* converse(
  customer: Api,
  request: Omit<ChatRequest, "stream" | "stream_options">,
  signal: AbortSignal,
): AsyncGenerator<Piece> {
  const { data, error, response } = await customer.POST("/v1/chat/completions", {
    body: { ...request, stream: true, stream_options: { include_usage: true } },
    parseAs: "stream",
    signal,
  });
  if (!response.ok || !data) throw failureOf(response, error);
  yield { kind: "began", requestId: response.headers.get("x-request-id") ?? "" };
  for await (const event of eventsOf(data)) {
    if (event === DONE) return;
    const body: unknown = JSON.parse(event);
    if (isError(body)) throw failureOf(response, body);
    yield* piecesOf(body as ChatChunk);
  }
}

async function* eventsOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  const events = new EventReader();
  for (;;) {
    const { done, value } = await reader.read().catch(broken);
    if (done) return;
    yield* events.read(decoder.decode(value, { stream: true }));
  }
}

/** The connection was lost on the way, unless somebody let go of it. */
function broken(thrown: unknown): never {
  throw isAbandoned(thrown) ? thrown : unreachable();
}

function isError(body: unknown): boolean {
  return typeof body === "object" && body !== null && "error" in body;
}

/** What a chunk of the one choice that was asked for adds. */
export function* piecesOf({ choices, usage }: ChatChunk): Generator<Piece> {
  for (const { delta, finish_reason } of choices) {
    const reasoning = delta.reasoning ?? delta.reasoning_content ?? "";
    if (reasoning !== "") yield { kind: "reasoning", text: reasoning };
    const text = delta.content ?? delta.refusal ?? "";
    if (text !== "") yield { kind: "text", text };
    if (finish_reason !== null) yield { kind: "finished", reason: finish_reason };
  }
  if (usage) yield { kind: "usage", usage };
}
