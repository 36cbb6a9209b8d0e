import { describe, expect, it } from "vitest";
import type { Piece } from "../../api/chat";
import { asked, heard, messagesOf, unasked } from "./talk";

const PIECES: Piece[] = [
  { kind: "began", requestId: "r1" },
  { kind: "reasoning", text: "Hm." },
  { kind: "text", text: "Hel" },
  { kind: "text", text: "lo." },
  { kind: "finished", reason: "stop" },
];

describe("a conversation", () => {
  it("grows by the pieces of its last answer", () => {
    const talk = PIECES.reduce(heard, asked([], "Say hello."));

    expect(talk.map(({ role, content }) => [role, content])).toEqual([
      ["user", "Say hello."],
      ["assistant", "Hello."],
    ]);
    expect(talk[1]).toMatchObject({ requestId: "r1", reasoning: "Hm.", finish: "stop" });
  });

  it("is sent with its instructions first, and without the place for the answer", () => {
    const talk = asked(PIECES.reduce(heard, asked([], "Say hello.")), "Again.");

    expect(messagesOf(talk, " Be brief. ")).toEqual([
      { role: "system", content: "Be brief." },
      { role: "user", content: "Say hello." },
      { role: "assistant", content: "Hello." },
      { role: "user", content: "Again." },
    ]);
  });

  it("forgets a question that got no answer, and keeps one that got a part of it", () => {
    const begun = PIECES.slice(0, 3).reduce(heard, asked([], "Say hello."));

    expect(unasked(asked([], "Say hello."))).toEqual([]);
    expect(unasked(begun)).toEqual(begun);
  });
});
