import { describe, expect, it } from "vitest";
import { EventReader } from "./events";

const STREAM =
  ': keep-alive\n\ndata: {"a": "[DONE]"}\r\n\r\nevent: x\ndata:1\ndata: 2\n\ndata: \u2028\rid: 7\r\rdata: [DONE]\n\n';
const EVENTS = ['{"a": "[DONE]"}', "1\n2", "\u2028", "[DONE]"];

describe("events", () => {
  it("are read whole", () => {
    expect(new EventReader().read(STREAM)).toEqual(EVENTS);
  });

  it("are the same wherever the stream is cut", () => {
    for (let cut = 0; cut <= STREAM.length; cut++) {
      const reader = new EventReader();
      const read = [...reader.read(STREAM.slice(0, cut)), ...reader.read(STREAM.slice(cut))];
      expect(read).toEqual(EVENTS);
    }
  });

  it("are the same letter by letter", () => {
    const reader = new EventReader();

    expect([...STREAM].flatMap((letter) => reader.read(letter))).toEqual(EVENTS);
  });

  it("that never end are never told", () => {
    expect(new EventReader().read("data: half")).toEqual([]);
  });
});
