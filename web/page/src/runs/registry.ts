/** All runs of the page, live and stored, and the one that is looked at. */

import { notice, sentence } from "../parts/notice.ts";
import { Signal } from "../parts/signal.ts";
import type { Settings } from "../settings.ts";
import type { OwnData } from "./data.ts";
import { lockOf, Session } from "./session.ts";
import { type Store, openStore } from "./storage.ts";

export const COLORS = 8;

/** A folder without a description is what a run left that never got a checkpoint, unless it is under way in another tab. */
async function removeRemains(store: Store, id: string): Promise<void> {
  const locks = await navigator.locks?.query();
  if (locks?.held?.some(({ name }) => name === lockOf(id))) return;
  await store.remove(id);
}

export class Registry {
  /** Runs came or went, another one is looked at, or one of them changed. */
  readonly changed = new Signal();
  sessions: Session[] = [];
  selected: Session | undefined;
  store: Store | undefined;
  /** Whether the storage has been looked through. */
  ready = false;

  async open(): Promise<void> {
    const opened = await openStore();
    if ("refused" in opened) {
      notice("warning", `Runs cannot be kept: ${opened.refused}. They work, and are lost when the tab is closed: download their checkpoints.`, { key: "storage" });
    } else {
      this.store = opened;
      await this.#load(opened);
    }
    this.ready = true;
    this.changed.emit();
  }

  async #load(store: Store): Promise<void> {
    try {
      for (const id of await store.list()) {
        try {
          const session = await Session.load(store, id);
          if (session) this.#add(session);
          else await removeRemains(store, id);
        } catch (error) {
          notice("warning", `A run in the browser's storage cannot be read and is passed over: ${sentence(error)}`);
        }
      }
    } catch (error) {
      notice("warning", `The browser's storage cannot be read: ${sentence(error)}`, { key: "storage" });
    }
    this.sessions.sort((a, b) => a.created - b.created);
    this.selected ??= this.sessions.at(-1);
  }

  #add(session: Session): void {
    this.sessions.push(session);
    session.changed.subscribe(() => this.changed.emit());
  }

  select(session: Session): void {
    this.selected = session;
    session.visible = true;
    this.changed.emit();
  }

  /** A run that has not begun. */
  create(settings: Settings, data: OwnData, name = this.#freeName(settings)): Session {
    const id = `${Date.now().toString(36)}-${Math.random().toString(36).slice(2, 8)}`;
    const used = new Set(this.sessions.map((session) => session.color));
    const free = Array.from({ length: COLORS }, (_, color) => color).find((color) => !used.has(color));
    const session = new Session(id, name, structuredClone(settings), free ?? this.sessions.length % COLORS, this.store);
    session.data = settings.kind === "language" ? (data.text ? { text: data.text } : {}) : data.digits ? { digits: data.digits } : {};
    this.#add(session);
    this.select(session);
    return session;
  }

  #freeName(settings: Settings): string {
    const base = settings.kind === "language" ? "stories" : "digits";
    const names = new Set(this.sessions.map((session) => session.name));
    for (let number = 1; ; number++) if (!names.has(`${base} ${number}`)) return `${base} ${number}`;
  }

  /** Frees what a run that is over takes; it stays in the storage. */
  async close(session: Session): Promise<void> {
    await session.keep();
    session.close();
  }

  async remove(session: Session): Promise<void> {
    await session.delete();
    this.sessions = this.sessions.filter((other) => other !== session);
    if (this.selected === session) this.selected = this.sessions.at(-1);
    this.changed.emit();
  }
}
