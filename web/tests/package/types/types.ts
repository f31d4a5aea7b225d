// What the types allow, and what they refuse. It is compiled and never run.

import * as volta from "volta-ml";
import { type LanguageModelRun, type Metrics, type Tensor, type Volta, nn, optim, tensor, trainClassifier } from "volta-ml";

// The package has every function that the interface promises, with its types.
export const face: Omit<Volta, "profile"> & Pick<Volta, "profile"> = volta;

export class Net extends nn.Module {
  hidden = new nn.Linear(4, 8, { bias: false });
  override forward(x: Tensor): Tensor {
    return this.hidden.forward(x).relu();
  }
}

export async function right(): Promise<void> {
  const x = tensor([[1, 2], [3, 4]], undefined, { dtype: "float32", requiresGrad: true });
  const value: number = await x.sum().item();
  const values: volta.TypedArray = await x.data();
  const gradient: Tensor | undefined = x.grad;
  const optimizer = new optim.AdamW(new Net().parameters(), { lr: 1e-3, betas: [0.9, 0.99] });
  new optim.Scheduler(optimizer, { kind: "WarmupLR", steps: 10, schedules: [{ kind: "CosineAnnealingLR", tMax: 100 }] });
  const [output, [hidden, cell]] = new nn.LSTM(3, 4).forward(x);
  const loss: Tensor = nn.functional.crossEntropy(output, hidden.add(cell), { labelSmoothing: 0.1 });
  new nn.Sequential(new nn.Linear(2, 2), new nn.ReLU(), new Net());
  using scoped = x.mul(2);
  for await (const metrics of trainClassifier({ device: "auto", schedule: "linear" })) {
    const { accuracy }: Metrics = metrics;
    const known: number | undefined = accuracy;
    void known;
  }
  const run: LanguageModelRun = volta.trainLanguageModel({ tokenizer: "bytes" });
  for await (const { text, probability } of run.generate({ prompt: "a" })) void [text.length, probability.toFixed(2)];
  void [value, values, gradient, loss, scoped];
}

export async function wrong(): Promise<void> {
  const x = tensor([1]);
  // @ts-expect-error a promise is no number
  const value: number = x.item();
  // @ts-expect-error a type that there is not
  tensor([1], undefined, { dtype: "float8" });
  // @ts-expect-error texts are no numbers
  tensor(["a"]);
  // @ts-expect-error an option that SGD has not
  new optim.SGD([x], { betas: [0.9, 0.99] });
  // @ts-expect-error a schedule without its steps
  new optim.Scheduler(new optim.SGD([x]), { kind: "CosineAnnealingLR" });
  // @ts-expect-error an LSTM has two outputs, and fits no chain
  new nn.Sequential(new nn.LSTM(2, 2));
  // @ts-expect-error a device that there is not
  await volta.init({ device: "tpu" });
  // @ts-expect-error what is inside stays inside
  void x.handle;
  // @ts-expect-error shapes are not written to
  x.shape[0] = 3;
  void value;
}
