import { describe, expect, it } from "vitest";
import { LANGUAGES, snippet } from "./snippets";

const CALL = { origin: "https://gate.example", key: "thp_abc", model: "example/large" };

describe("snippets", () => {
  it.each(LANGUAGES)("hold all that a first call needs: $title", ({ value }) => {
    const text = snippet(value, CALL);

    expect(text).toContain("https://gate.example/v1");
    expect(text).toContain("thp_abc");
    expect(text).toContain("example/large");
  });

  it.each(LANGUAGES)("cannot be broken out of by a model's name: $title", ({ value }) => {
    const text = snippet(value, { ...CALL, model: `x"'; rm -rf ~; echo "` });

    expect(text).not.toContain("rm -rf");
    expect(text).toContain("MODEL");
  });
});
