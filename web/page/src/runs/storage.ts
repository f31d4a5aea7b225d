/** Runs in the browser's own file system (OPFS): a folder a run, every file written whole or not at all. */

export type StoredFile = "run.json" | "history.bin" | "checkpoint.safetensors" | "text.txt" | "images.idx" | "labels.idx";

export interface Store {
  /** The identifiers of the runs that are there. */
  list(): Promise<string[]>;
  read(run: string, file: StoredFile): Promise<Uint8Array | undefined>;
  write(run: string, file: StoredFile, content: Uint8Array | string): Promise<void>;
  remove(run: string): Promise<void>;
}

/** Storage cannot be used, and why. */
export interface Refusal {
  refused: string;
}

/** The storage took no more. */
export class StorageFull extends Error {
  constructor() {
    super("the browser's storage is full");
  }
}

const FOLDER = "volta-runs";

export async function openStore(): Promise<Store | Refusal> {
  if (!navigator.storage?.getDirectory) return { refused: "this browser has no storage for files" };
  if (!("createWritable" in FileSystemFileHandle.prototype)) return { refused: "this browser does not let a page write files" };
  try {
    const root = await navigator.storage.getDirectory();
    return new FileStore(await root.getDirectoryHandle(FOLDER, { create: true }));
  } catch {
    return { refused: "the browser refuses storage to this page, as it does in some private windows" };
  }
}

class FileStore implements Store {
  constructor(readonly folder: FileSystemDirectoryHandle) {}

  async list(): Promise<string[]> {
    const names: string[] = [];
    for await (const [name, handle] of this.folder.entries()) if (handle.kind === "directory") names.push(name);
    return names;
  }

  async read(run: string, file: StoredFile): Promise<Uint8Array | undefined> {
    try {
      const folder = await this.folder.getDirectoryHandle(run);
      const handle = await folder.getFileHandle(file);
      return new Uint8Array(await (await handle.getFile()).arrayBuffer());
    } catch (error) {
      if (error instanceof DOMException && error.name === "NotFoundError") return undefined;
      throw error;
    }
  }

  /** What is written takes the old file's place when it is closed. */
  async write(run: string, file: StoredFile, content: Uint8Array | string): Promise<void> {
    try {
      const folder = await this.folder.getDirectoryHandle(run, { create: true });
      const handle = await folder.getFileHandle(file, { create: true });
      const writable = await handle.createWritable();
      try {
        await writable.write(content as FileSystemWriteChunkType);
        await writable.close();
      } catch (error) {
        await writable.abort().catch(() => {});
        throw error;
      }
    } catch (error) {
      if (error instanceof DOMException && error.name === "QuotaExceededError") throw new StorageFull();
      throw error;
    }
  }

  async remove(run: string): Promise<void> {
    await this.folder.removeEntry(run, { recursive: true }).catch((error: unknown) => {
      if (!(error instanceof DOMException && error.name === "NotFoundError")) throw error;
    });
  }
}
