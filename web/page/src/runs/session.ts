/** A run as the page knows it: live in a worker, or in the browser's storage and ready to go on. */

import { type ClassifierRun, type LanguageModelRun, type Progress, type RunInfo, trainClassifier, trainLanguageModel, VoltaError } from "volta-ml";
import { announce, notice, sentence } from "../parts/notice.ts";
import { Signal } from "../parts/signal.ts";
import { whole } from "../parts/format.ts";
import { type Settings, classifierOptions, languageOptions, presetNamed, presetsOf } from "../settings.ts";
import { type OwnData, loadData, storeData } from "./data.ts";
import { History } from "./history.ts";
import { type Store, StorageFull } from "./storage.ts";

export type Status = "starting" | "running" | "paused" | "finished" | "stopped" | "stored" | "failed";

export interface Sample {
  step: number;
  text: string;
}

/** What stands in `run.json`. */
interface Stored {
  version: 1;
  name: string;
  settings: Settings;
  color: number;
  created: number;
  updated: number;
  step: number;
  samples: Sample[];
  dataName?: string;
  checkpointBytes: number;
  parameters?: number;
}

/** Between two checkpoints, in milliseconds: so long at least, so many times what writing one takes, but no longer than the last. */
const CHECKPOINT_EVERY_MS = 4000;
const CHECKPOINT_AT_MOST_MS = 20_000;
const CHECKPOINT_SHARE = 20;
/** Kinds of errors after which a new worker or another device may well go on. */
const RECOVERABLE: ReadonlySet<string> = new Set(["module", "device"]);
/** More samples than anybody reads. */
const MAX_SAMPLES = 200;

type Live = { kind: "language"; run: LanguageModelRun } | { kind: "digits"; run: ClassifierRun };

/** The lock that a tab holds while it has a run open. */
export function lockOf(id: string): string {
  return `volta-run-${id}`;
}

const told = new Set<string>();

/** What holds for every run here is said with the first. */
function tellOnce(warning: string): void {
  if (told.has(warning)) return;
  told.add(warning);
  notice("info", sentence(warning), { key: warning });
}

export class Session {
  readonly changed = new Signal();
  status: Status = "starting";
  info: RunInfo | undefined;
  history = new History();
  samples: Sample[] = [];
  progress: Progress | undefined;
  /** Why it failed, as a sentence. */
  failure: string | undefined;
  created = Date.now();
  updated = Date.now();
  /** The step that the stored checkpoint is of, and its size. */
  stored: { step: number; bytes: number; time: number } | undefined;
  /** Another tab of this browser trains it. */
  elsewhere = false;
  data: OwnData = {};
  dataName: string | undefined;
  visible = true;
  #live: Live | undefined;
  #bytes: Uint8Array | undefined;
  #checkpointing: Promise<void> | undefined;
  #checkpointMs = 0;
  #nextCheckpoint = 0;
  #release: (() => void) | undefined;
  #lastMetrics = performance.now();
  #recoveredAt = -1;

  constructor(readonly id: string, public name: string, public settings: Settings, readonly color: number, readonly store: Store | undefined) {}

  get kind(): "language" | "digits" {
    return this.settings.kind;
  }
  get steps(): number {
    return Number(this.settings.values.steps);
  }
  get step(): number {
    return this.history.step;
  }
  get isLive(): boolean {
    return this.#live !== undefined;
  }
  get isBusy(): boolean {
    return this.status === "running" || this.status === "starting";
  }
  get language(): LanguageModelRun | undefined {
    return this.#live?.kind === "language" ? this.#live.run : undefined;
  }
  get classifier(): ClassifierRun | undefined {
    return this.#live?.kind === "digits" ? this.#live.run : undefined;
  }
  get run(): LanguageModelRun | ClassifierRun | undefined {
    return this.#live?.run;
  }

  /** Begins, or goes on from a checkpoint. */
  async start(options: { checkpoint?: Uint8Array; paused?: boolean } = {}): Promise<void> {
    if (!(await this.#lock())) {
      this.elsewhere = true;
      this.changed.emit();
      throw new Error(`“${this.name}” is open in another tab of this browser`);
    }
    this.elsewhere = false;
    this.failure = undefined;
    this.#set(options.paused ? "paused" : "starting");
    const common = {
      ...options,
      onProgress: (progress: Progress): void => {
        this.progress = progress;
        this.changed.emit();
      },
    };
    try {
      if (this.kind === "language") {
        const text = this.data.text?.text;
        this.#live = { kind: "language", run: trainLanguageModel({ ...languageOptions(this.settings), ...common, ...(text === undefined ? {} : { text }) }) };
      } else {
        const digits = this.data.digits;
        this.#live = { kind: "digits", run: trainClassifier({ ...classifierOptions(this.settings), ...common, ...(digits ? { data: { images: digits.images, labels: digits.labels } } : {}) }) };
      }
    } catch (error) {
      this.#fail(error);
      return;
    }
    void this.#follow(this.#live.run);
    void this.#describe(this.#live.run);
    await this.#storeBegin();
  }

  async #describe(run: LanguageModelRun | ClassifierRun): Promise<void> {
    try {
      this.info = await run.info;
    } catch {
      return; // The iterator tells the same.
    }
    if (run !== this.run) return;
    // Shaders are compiled before the first step, and by it.
    this.progress = { stage: "preparing the first step", fraction: 0 };
    const { firstStep } = this.info;
    this.history.truncate(firstStep - 1);
    this.samples = this.samples.filter((sample) => sample.step < firstStep);
    for (const warning of this.info.warnings) tellOnce(warning);
    const { adapter, warnings } = this.info;
    if (adapter.device === "gpu" && adapter.software && warnings.length === 0) {
      tellOnce("this GPU is a program on the processor: it is slower than the CPU, and its first step takes long");
    }
    this.changed.emit();
  }

  async #follow(run: LanguageModelRun | ClassifierRun): Promise<void> {
    try {
      for await (const metrics of run) {
        if (run !== this.run) return;
        this.#lastMetrics = performance.now();
        this.history.push(metrics);
        this.settings.values.steps = metrics.steps;
        if (metrics.sample) this.#keepSample(metrics.sample);
        if (metrics.warning) notice("warning", `“${this.name}”: ${sentence(metrics.warning)}`, { key: `warning-${this.id}` });
        if (this.status === "starting") this.#set("running");
        this.changed.emit();
        if (performance.now() >= this.#nextCheckpoint && !this.#checkpointing) this.#checkpointSoon();
      }
      if (run !== this.run) return;
      this.#set(this.step >= this.steps ? "finished" : "stopped");
      announce(`${this.name} has ${this.status} after step ${this.step}.`);
      await this.keep();
    } catch (error) {
      if (run === this.run) await this.#recover(error);
    }
  }

  #keepSample(sample: Sample): void {
    this.samples = this.samples.filter((old) => old.step < sample.step);
    this.samples.push(sample);
    if (this.samples.length > MAX_SAMPLES) this.samples.splice(1, 1);
  }

  /** Goes on from what is stored, once for every step that got stored since: a fault that comes back at once is told. */
  async #recover(error: unknown): Promise<void> {
    const { stored } = this;
    if (!(error instanceof VoltaError) || !RECOVERABLE.has(error.kind) || !stored || stored.step <= this.#recoveredAt) return this.#fail(error);
    this.#recoveredAt = stored.step;
    notice("warning", `“${this.name}” was interrupted: ${sentence(error)} It goes on from step ${whole(stored.step)}.`, { key: `warning-${this.id}` });
    try {
      await this.continue();
    } catch (again) {
      this.#fail(again);
    }
  }

  #fail(error: unknown): void {
    if (this.status === "failed") return;
    this.failure = sentence(error);
    this.#release?.();
    this.#release = undefined;
    this.run?.terminate();
    this.#live = undefined;
    this.#set("failed");
    const kept = this.stored ? ` What it learnt until step ${whole(this.stored.step)} is kept: “Continue” goes on from there.` : "";
    notice("error", `“${this.name}” ended: ${this.failure}${kept}`, { key: `failed-${this.id}` });
  }

  #set(status: Status): void {
    this.status = status;
    this.changed.emit();
  }

  async pause(): Promise<void> {
    this.#set("paused");
    await this.run?.pause();
    this.#checkpointSoon();
  }

  async resume(): Promise<void> {
    await this.run?.resume();
    this.#set("running");
  }

  async singleStep(): Promise<void> {
    await this.run?.step();
    this.#checkpointSoon();
  }

  async stop(): Promise<void> {
    await this.run?.stop();
  }

  /** Goes on from what is stored. */
  async continue(options: { paused?: boolean; moreSteps?: number } = {}): Promise<void> {
    await this.#checkpointing;
    const checkpoint = this.#bytes ?? (await this.store?.read(this.id, "checkpoint.safetensors"));
    if (!checkpoint) throw new Error(`no checkpoint of “${this.name}” is in the browser's storage`);
    if (this.store && !this.data.text && !this.data.digits) this.data = await loadData(this.store, this.id, this.dataName);
    const old = this.run;
    this.#live = undefined;
    old?.terminate();
    if (options.moreSteps) this.settings.values.steps = this.steps + options.moreSteps;
    await this.start({ checkpoint, paused: options.paused ?? false });
  }

  async checkpoint(): Promise<Uint8Array> {
    if (this.run) return this.run.checkpoint();
    const stored = this.#bytes ?? (await this.store?.read(this.id, "checkpoint.safetensors"));
    if (!stored) throw new Error(`no checkpoint of “${this.name}” is in the browser's storage`);
    return stored;
  }

  #checkpointSoon(): void {
    void this.keep();
  }

  /** Writes the checkpoint and what belongs to it into the browser's storage. One at a time. */
  async keep(): Promise<void> {
    // The one under way may be of an earlier step.
    while (this.#checkpointing) {
      await this.#checkpointing;
      if (this.stored?.step === this.step) return;
    }
    this.#checkpointing = this.#keep().finally(() => (this.#checkpointing = undefined));
    await this.#checkpointing;
  }

  async #keep(): Promise<void> {
    const run = this.run;
    if (!run) return;
    const began = performance.now();
    try {
      await run.info;
      const bytes = await run.checkpoint();
      if (run !== this.run) return;
      const step = this.step;
      await this.#write(bytes, step);
    } catch (error) {
      if (run === this.run && this.status !== "failed" && !(error instanceof StorageFull)) {
        console.debug("a checkpoint could not be made", error);
      }
    }
    this.#checkpointMs = performance.now() - began;
    this.#nextCheckpoint = performance.now() + Math.min(CHECKPOINT_AT_MOST_MS, Math.max(CHECKPOINT_EVERY_MS, CHECKPOINT_SHARE * this.#checkpointMs));
  }

  async #write(bytes: Uint8Array, step: number): Promise<void> {
    this.updated = Date.now();
    try {
      if (!this.store) throw new Error("no storage");
      await this.store.write(this.id, "checkpoint.safetensors", bytes);
      await this.store.write(this.id, "history.bin", this.history.toBytes());
      this.stored = { step, bytes: bytes.length, time: Date.now() };
      await this.#describeStored();
      this.#bytes = undefined;
    } catch (error) {
      // It is kept in memory, so that at least a lost device costs nothing.
      this.#bytes = bytes;
      this.stored ??= { step, bytes: bytes.length, time: Date.now() };
      if (this.store) {
        const why = error instanceof StorageFull ? "The browser's storage is full" : `The browser's storage does not work: ${sentence(error)}`;
        notice("warning", `${why.replace(/\.$/, "")}. “${this.name}” trains on, and is lost when the tab is closed: download its checkpoint, or delete other runs.`, { key: "storage" });
      }
    }
    this.changed.emit();
  }

  async #describeStored(): Promise<void> {
    const { name, settings, color, created, updated, samples, dataName } = this;
    const stored: Stored = {
      version: 1, name, settings, color, created, updated, step: this.stored?.step ?? 0, samples: samples.slice(-50),
      checkpointBytes: this.stored?.bytes ?? 0,
      ...(dataName === undefined ? {} : { dataName }), ...(this.info ? { parameters: this.info.parameters } : {}),
    };
    await this.store?.write(this.id, "run.json", JSON.stringify(stored));
  }

  async #storeBegin(): Promise<void> {
    this.dataName = this.data.text?.name ?? this.data.digits?.name ?? this.dataName;
    if (!this.store) return;
    try {
      await storeData(this.store, this.id, this.data);
    } catch {
      notice("warning", "The browser's storage is full: this run is lost when the tab is closed. Download its checkpoint, or delete other runs.", { key: "storage" });
    }
  }

  async rename(name: string): Promise<void> {
    this.name = name;
    this.changed.emit();
    if (this.stored) await this.#describeStored();
  }

  /** Frees its worker; what is stored stays. */
  close(): void {
    const run = this.run;
    this.#live = undefined;
    run?.terminate();
    this.#release?.();
    this.#release = undefined;
    this.#set("stored");
  }

  /** Ends it and forgets what is stored of it. */
  async delete(): Promise<void> {
    const run = this.run;
    this.#live = undefined;
    run?.terminate();
    await this.#checkpointing?.catch(() => {});
    await this.store?.remove(this.id);
    this.#release?.();
  }

  /** How long nothing was heard of a run that should be running, in milliseconds. */
  silence(): number {
    return this.status === "running" ? performance.now() - this.#lastMetrics : 0;
  }

  /** One tab at a time trains a run. */
  async #lock(): Promise<boolean> {
    if (this.#release || !navigator.locks) return true;
    return new Promise((answer) => {
      void navigator.locks.request(lockOf(this.id), { ifAvailable: true }, (lock) => {
        answer(lock !== null);
        return lock ? new Promise<void>((release) => (this.#release = release)) : undefined;
      });
    });
  }

  /** A run as it lies in the storage; `undefined` if what is there cannot be used. */
  static async load(store: Store, id: string): Promise<Session | undefined> {
    const json = await store.read(id, "run.json");
    if (!json) return undefined;
    const stored = JSON.parse(new TextDecoder().decode(json)) as Stored;
    if (stored.version !== 1) return undefined;
    const { settings } = stored;
    const [usual] = presetsOf(settings.kind);
    if (!usual) throw new Error(`it is of an unknown kind, “${String(settings.kind)}”`);
    // A setting that came later is as it usually is.
    settings.values = { ...(presetNamed(settings.preset) ?? usual).values, ...settings.values };
    const session = new Session(id, stored.name, settings, stored.color, store);
    session.status = "stored";
    session.created = stored.created;
    session.updated = stored.updated;
    session.samples = stored.samples;
    session.dataName = stored.dataName;
    session.stored = { step: stored.step, bytes: stored.checkpointBytes, time: stored.updated };
    const history = await store.read(id, "history.bin");
    if (history) session.history = History.fromBytes(history);
    return session;
  }
}
