// What a page and its worker say to each other.

import type { ErrorKindName, Progress } from "../types.js";

/** A call of the page. */
export interface Request {
  id: number;
  method: string;
  args: unknown[];
}

/** The end of a call, a part of what it gives before that, or something that nobody asked for. */
export type Reply =
  | { id: number; type: "result"; value: unknown }
  | { id: number; type: "error"; kind: ErrorKindName; message: string }
  | { id: number; type: "item"; value: unknown }
  | { type: "event"; name: string; value: unknown }
  | { type: "progress"; value: Progress }
  /** The worker cannot go on. */
  | { type: "fatal"; message: string };

/** What both sides post messages with. */
export interface Port {
  postMessage(message: unknown, transfer?: Transferable[]): void;
}
