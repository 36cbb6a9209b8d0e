/** Server-sent events from a stream of text that may be cut anywhere. */

/** The data of each event, as pieces of text arrive; what is not complete yet waits inside. */
export class EventReader {
  private rest = "";
  private data: string[] = [];

  /** The events that are complete with this piece. */
  read(piece: string): string[] {
    const text = this.rest + piece;
    // A carriage return at the very end may be the first half of a line's end.
    const isHalf = text.endsWith("\r");
    const lines = (isHalf ? text.slice(0, -1) : text).split(/\r\n|\n|\r/);
    this.rest = (lines.pop() ?? "") + (isHalf ? "\r" : "");
    return lines.flatMap((line) => this.take(line));
  }

  private take(line: string): string[] {
    if (line === "") {
      const event = this.data.join("\n");
      const isEmpty = this.data.length === 0;
      this.data = [];
      return isEmpty ? [] : [event];
    }
    if (line.startsWith("data:")) this.data.push(line.slice(5).replace(/^ /, ""));
    return [];
  }
}
