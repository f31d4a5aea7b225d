/** A run's status in a word, and what can be done with it. */

import { short } from "../parts/format.ts";
import type { Session, Status } from "../runs/session.ts";

const WORDS: Record<Status, string> = {
  starting: "starting", running: "training", paused: "paused", finished: "finished", stopped: "stopped", stored: "kept", failed: "ended by an error",
};

export function statusWord(session: Session): string {
  if (session.elsewhere) return "open in another tab";
  if (session.status === "starting" && session.progress) return `${session.progress.stage}…`;
  return WORDS[session.status];
}

/** The step and how many there are. */
export function stepText(session: Session): string {
  return `${short(session.step)} / ${short(session.steps)}`;
}

/** Whether it can go on from what is stored. */
export function canContinue(session: Session): boolean {
  return session.stored !== undefined && !session.isLive && session.step < session.steps;
}

/** Whether it is over and could train further. */
export function canExtend(session: Session): boolean {
  return session.stored !== undefined && (session.status === "finished" || (session.status === "stored" && session.step >= session.steps));
}
