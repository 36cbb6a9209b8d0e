// Vercel's AI SDK with its OpenAI-compatible provider. Prints what an ability gave as JSON.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const found = createRequire(`${process.env.PACKAGES}/package.json`);
const load = (name) => import(pathToFileURL(found.resolve(name)));
const ai = await load("ai");
const { createOpenAICompatible } = await load("@ai-sdk/openai-compatible");
const { z } = await load("zod");

const provider = createOpenAICompatible({
  name: "tollhouse",
  baseURL: process.env.BASE_URL,
  apiKey: process.env.KEY,
  supportsStructuredOutputs: true,
  includeUsage: true,
});
const common = { model: provider(process.env.MODEL), maxRetries: 0 };

const abilities = {
  async chat() {
    return { text: (await ai.generateText({ ...common, prompt: "Say it." })).text };
  },
  async stream() {
    const pieces = [];
    for await (const piece of ai.streamText({ ...common, prompt: "Say it." }).textStream) {
      pieces.push(piece);
    }
    return { text: pieces.join(""), pieces: pieces.length };
  },
  async tools() {
    const weather = ai.tool({
      description: "Return the weather of a city.",
      inputSchema: z.object({ city: z.string() }),
      execute: async ({ city }) => `sunny in ${city}`,
    });
    const answer = await ai.generateText({
      ...common,
      tools: { get_weather: weather },
      stopWhen: ai.stepCountIs(3),
      prompt: "What is the weather?",
    });
    return { text: answer.text };
  },
  async structured() {
    const schema = z.object({ city: z.string(), degrees: z.number() });
    const answer = await ai.generateText({
      ...common,
      output: ai.Output.object({ schema }),
      prompt: "What is the weather?",
    });
    return answer.output;
  },
  async turns() {
    const one = { role: "user", content: "One?" };
    const first = await ai.generateText({ ...common, messages: [one] });
    const messages = [one, ...first.response.messages, { role: "user", content: "Two?" }];
    return { text: (await ai.generateText({ ...common, messages })).text };
  },
};

console.log(JSON.stringify(await abilities[process.argv[2]]()));
