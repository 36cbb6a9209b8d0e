/** A conversation as it grows. */

import type { Piece, Usage } from "../../api/chat";

export interface Turn {
  readonly role: "user" | "assistant";
  readonly content: string;
  readonly reasoning: string;
  readonly requestId: string;
  readonly finish: string;
  readonly usage: Usage | null;
}

function turn(role: Turn["role"], content: string): Turn {
  return { role, content, reasoning: "", requestId: "", finish: "", usage: null };
}

/** The conversation with a question, and an empty place for its answer. */
export function asked(talk: readonly Turn[], question: string): Turn[] {
  return [...talk, turn("user", question), turn("assistant", "")];
}

/** The conversation with one more piece of its last answer. */
export function heard(talk: readonly Turn[], piece: Piece): Turn[] {
  const last = talk.at(-1);
  if (last === undefined) return [];
  return [...talk.slice(0, -1), grown(last, piece)];
}

function grown(answer: Turn, piece: Piece): Turn {
  switch (piece.kind) {
    case "began":
      return { ...answer, requestId: piece.requestId };
    case "text":
      return { ...answer, content: answer.content + piece.text };
    case "reasoning":
      return { ...answer, reasoning: answer.reasoning + piece.text };
    case "finished":
      return { ...answer, finish: piece.reason };
    case "usage":
      return { ...answer, usage: piece.usage };
  }
}

/** Without the last question and what came of it, which was nothing. */
export function unasked(talk: readonly Turn[]): Turn[] {
  return talk.at(-1)?.content === "" ? talk.slice(0, -2) : [...talk];
}

/** What the model is sent: all of it but the empty place. */
export function messagesOf(
  talk: readonly Turn[],
  instructions: string,
): Array<{ role: "system" | Turn["role"]; content: string }> {
  const said = talk.slice(0, -1).map(({ role, content }) => ({ role, content }));
  const first = instructions.trim();
  return first === "" ? said : [{ role: "system", content: first }, ...said];
}

const FINISHES: Readonly<Record<string, string>> = {
  length: "stopped at the maximum of output tokens",
  content_filter: "stopped by a filter",
};

/** Why it ended, where that is worth a word. */
export function ending(finish: string): string {
  return FINISHES[finish] ?? "";
}
