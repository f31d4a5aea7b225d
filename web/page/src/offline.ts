/** The service worker: keeps the page's own files, so that it opens without a network. */

export {};

declare const FILES: readonly string[];
declare const VERSION: string;

interface Worker {
  addEventListener(type: "install" | "activate", listener: (event: { waitUntil(work: Promise<unknown>): void }) => void): void;
  addEventListener(type: "fetch", listener: (event: { request: Request; respondWith(answer: Promise<Response>): void }) => void): void;
  skipWaiting(): Promise<void>;
  clients: { claim(): Promise<void> };
  registration: { scope: string };
}

const worker = self as unknown as Worker;
const PREFIX = "volta-page-";
const NAME = PREFIX + VERSION;

worker.addEventListener("install", (event) => {
  event.waitUntil((async () => {
    const cache = await caches.open(NAME);
    await cache.addAll(FILES.map((file) => new Request(new URL(file, worker.registration.scope), { cache: "no-cache" })));
    await worker.skipWaiting();
  })());
});

worker.addEventListener("activate", (event) => {
  event.waitUntil((async () => {
    for (const name of await caches.keys()) if (name.startsWith(PREFIX) && name !== NAME) await caches.delete(name);
    await worker.clients.claim();
  })());
});

/** The network, so that a new build is seen at once; without one, what is kept. Other hosts are never asked. */
worker.addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method !== "GET" || !request.url.startsWith(worker.registration.scope)) return;
  event.respondWith((async () => {
    const cache = await caches.open(NAME);
    const kept = (): Promise<Response | undefined> => cache.match(request, { ignoreSearch: true });
    try {
      const answer = await fetch(request);
      if (answer.ok || answer.status === 304) return answer;
      return (await kept()) ?? answer;
    } catch (error) {
      const answer = await kept();
      if (answer) return answer;
      throw error;
    }
  })());
});
