// The package: tensors, layers and optimizers in this thread; whole runs in workers.

export { VoltaError } from "./errors.js";
export { adapter, init } from "./device.js";
export { counters, lastPlan, memory, resetPeak, type Counters, type Plan } from "./telemetry.js";
export { profile } from "./profile.js";
export * from "./types.js";
export {
  Tensor,
  arange,
  autocast,
  bernoulli,
  cat,
  einsum,
  enableGrad,
  eye,
  full,
  grad,
  linspace,
  manualSeed,
  noGrad,
  ones,
  onesLike,
  rand,
  randint,
  randn,
  realize,
  stack,
  tensor,
  where,
  zeros,
  zerosLike,
  type Axes,
  type BackwardOptions,
  type DType,
  type NestedNumbers,
  type Operand,
  type TensorData,
  type TensorOptions,
  type TypedArray,
} from "./tensor.js";
export * as nn from "./nn/index.js";
export * as optim from "./optim/index.js";
export { loadCheckpoint, loadSafetensors, saveCheckpoint, saveSafetensors, type CheckpointParts } from "./files.js";
export { GpuBuffer, GpuDevice, GpuTensor } from "./raw.js";
export { trainClassifier, trainLanguageModel } from "./runs/run.js";
export { bench, estimate, openLanguageModel, stories } from "./runs/service.js";
