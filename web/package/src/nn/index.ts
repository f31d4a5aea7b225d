// Layers, networks and losses: `nn`.

export { Module, Parameter, type AnyModule, type LoadReport, type StateDict } from "./module.js";
export * from "./layers.js";
export * from "./containers.js";
export { clipGradNorm, clipGradValue } from "./clip.js";
export * as functional from "../functional.js";
