import { describe, expect, it } from "vitest";
import { namesIn } from "./lists";

describe("lists", () => {
  it.each([
    ["", []],
    [" a ,, b", ["a", "b"]],
    ["example/large", ["example/large"]],
  ])("are read from %j", (text, names) => {
    expect(namesIn(text)).toEqual(names);
  });
});
