/** A first call, ready to be pasted, with the key and the address already in it. */

export type Language = "curl" | "python" | "node";

export const LANGUAGES: ReadonlyArray<{ readonly value: Language; readonly title: string }> = [
  { value: "curl", title: "curl" },
  { value: "python", title: "Python" },
  { value: "node", title: "Node" },
];

export interface FirstCall {
  readonly origin: string;
  readonly key: string;
  readonly model: string;
}

/** None of the values needs escaping: keys are base62, and model names are checked by `isPlain`. */
export function snippet(language: Language, { origin, key, model }: FirstCall): string {
  const named = isPlain(model) ? model : "MODEL";
  switch (language) {
    case "curl":
      return `curl ${origin}/v1/chat/completions \\
  --header "Authorization: Bearer ${key}" \\
  --header "Content-Type: application/json" \\
  --data '{
    "model": "${named}",
    "messages": [{"role": "user", "content": "Say hello."}]
  }'`;
    case "python":
      return `from openai import OpenAI

client = OpenAI(base_url="${origin}/v1", api_key="${key}")
answer = client.chat.completions.create(
    model="${named}",
    messages=[{"role": "user", "content": "Say hello."}],
)
print(answer.choices[0].message.content)`;
    case "node":
      return `import OpenAI from "openai";

const client = new OpenAI({ baseURL: "${origin}/v1", apiKey: "${key}" });
const answer = await client.chat.completions.create({
  model: "${named}",
  messages: [{ role: "user", content: "Say hello." }],
});
console.log(answer.choices[0].message.content);`;
  }
}

function isPlain(model: string): boolean {
  return /^[\w./:@+-]+$/.test(model);
}
