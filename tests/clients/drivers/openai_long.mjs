// OpenAI's SDK for Node with a prompt that is too long. Prints what each way to ask raises.
import { createRequire } from "node:module";

const { default: OpenAI } = createRequire(`${process.env.PACKAGES}/package.json`)("openai");
const client = new OpenAI({ baseURL: process.env.BASE_URL, apiKey: process.env.KEY });
const long = "word ".repeat(4_000);
const chat = { model: process.env.MODEL, messages: [{ role: "user", content: long }] };
const response = { model: process.env.MODEL, input: long };
const read = async (stream) => {
  for await (const _ of await stream);
};
const ways = {
  chat: () => client.chat.completions.create(chat),
  "chat stream": () => read(client.chat.completions.create({ ...chat, stream: true })),
  responses: () => client.responses.create(response),
  "responses stream": () => read(client.responses.create({ ...response, stream: true })),
};

for (const [way, ask] of Object.entries(ways)) {
  await ask().catch(({ constructor, code, message }) => {
    console.log(JSON.stringify({ way, raised: [constructor.name, code], message }));
  });
}
