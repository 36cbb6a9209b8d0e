import { describe, expect, it } from "vitest";
import { linesIn, namesIn } from "./lists";

describe("lists", () => {
  it.each([
    ["", []],
    [" a ,, b", ["a", "b"]],
    ["example/large", ["example/large"]],
  ])("are read from %j", (text, names) => {
    expect(namesIn(text)).toEqual(names);
  });

  it("are read from lines, each once", () => {
    expect(linesIn(" a \r\n\nb, c\na")).toEqual(["a", "b, c"]);
  });
});
