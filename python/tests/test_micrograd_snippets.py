"""The Python of micrograd_rs's document, block by block, as it stands there."""

import os
import re
import subprocess
import sys

from micrograd_rs import Device, Tensor

# What the document shows. Its fragments use names of one another; `other_tensor` it leaves to the reader.
DOCUMENT = '''
Device preservation:

```python
a = Value(2.0, device=Device.gpu())
b = Value(3.0, device=Device.gpu())
c = a + b  # c is also on GPU
```

Basic usage:

```python
from micrograd_rs import Value, Device

# Check GPU availability
if Device.is_gpu_available():
    device = Device.gpu()
else:
    device = Device.cpu()

# Create values on device
a = Value(2.0, device=device)
b = Value(3.0, device=device)

# Operations preserve device
c = a * b + a**2
c.backward()
```

Neural networks:

```python
from micrograd_rs import MLP, Device

# Create model on GPU
model = MLP(10, [20, 20, 1], device=Device.gpu())

# Create inputs on same device
x = [Value(i, device=Device.gpu()) for i in range(10)]

# Forward and backward passes
y = model(x)
y.backward()
```

Batches:

```python
# Future API
batch = ValueBatch([1.0, 2.0, 3.0], device=Device.gpu())
result = batch * 2.0  # All operations in one GPU kernel
```

Tensors:

```python
# Future API
tensor = Tensor([[1, 2], [3, 4]], device=Device.gpu())
result = tensor @ other_tensor  # Matrix multiplication on GPU
```
'''

SNIPPETS = re.findall(r"```python\n(.*?)```", DOCUMENT, flags=re.DOTALL)


def run(snippet, **names):
    exec("from micrograd_rs import *", names)
    exec(snippet, names)
    return names


def test_there_are_five_snippets():
    assert len(SNIPPETS) == 5


def test_basic_usage_runs_on_whatever_device_there_is():
    names = run(SNIPPETS[1])
    assert names["c"].data == 10.0
    assert (names["a"].grad, names["b"].grad) == (7.0, 2.0)
    assert names["c"].device == names["device"]


def test_operations_preserve_the_device(gpu):
    names = run(SNIPPETS[0])
    assert names["c"].data == 5.0
    assert names["c"].device == Device.gpu()


def test_a_network_on_the_gpu_runs_forward_and_backward(gpu):
    names = run(SNIPPETS[2])
    parameters = names["model"].parameters()
    assert len(parameters) == 11 * 20 + 21 * 20 + 21
    assert all(p.device == Device.gpu() for p in parameters)
    assert names["y"].device == Device.gpu()
    assert names["y"].grad == 1.0
    assert any(p.grad != 0.0 for p in parameters)


def test_a_batch_is_computed_on_the_gpu(gpu):
    names = run(SNIPPETS[3])
    assert names["result"].tolist() == [2.0, 4.0, 6.0]
    assert names["result"].device == Device.gpu()


def test_a_product_of_tensors_is_computed_on_the_gpu(gpu):
    names = run(SNIPPETS[4], other_tensor=Tensor([[0, 1], [1, 0]], device=Device.gpu()))
    assert names["result"].tolist() == [[2.0, 1.0], [4.0, 3.0]]
    assert names["result"].device == Device.gpu()


def test_where_the_gpu_is_missing_an_error_says_so():
    program = "from micrograd_rs import Device; print(Device.is_gpu_available()); Device.gpu()"
    missing = os.environ | {"VOLTA_ADAPTER": "an adapter that is nowhere"}
    done = subprocess.run([sys.executable, "-c", program], env=missing, capture_output=True, text=True)
    assert done.stdout.strip() == "False"
    assert re.search("RuntimeError: .*an adapter that is nowhere", done.stderr)
