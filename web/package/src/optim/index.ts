// Optimizers and schedules: `optim`.

export * from "./optimizers.js";
export * from "./schedules.js";
