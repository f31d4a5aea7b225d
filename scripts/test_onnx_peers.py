"""What scripts/test-peers compares of ONNX: the standard's node tests, networks that onnxruntime computes, and Volta's files in onnxruntime.

    test_onnx_peers.py cases FILE      writes the node tests of the package onnx, and three networks of rapidocr-onnxruntime
    test_onnx_peers.py verdicts FILE   reads what the example onnx_cases says of them, and compares with docs/onnx.md
    test_onnx_peers.py exported FILE   reads what the example onnx_export says, and computes its files with onnxruntime
"""

import collections
import json
import re
import struct
import sys
import warnings
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

# Types that Volta has no operators for; tests with them are not counted.
OTHER_TYPES = """STRING FLOAT8E4M3FN FLOAT8E5M2 FLOAT8E4M3FNUZ FLOAT8E5M2FNUZ FLOAT4E2M1 FLOAT8E8M0 UINT4 INT4 UINT2 INT2
    COMPLEX64 COMPLEX128""".split()
NETWORKS = {
    "ch_PP-OCRv4_det_infer": (1, 3, 64, 192),
    "ch_PP-OCRv4_rec_infer": (1, 3, 48, 160),
    "ch_ppocr_mobile_v2.0_cls_infer": (2, 3, 48, 192),
}
# Of what must pass.
SHARE = 0.85


class Cases:
    """The file that crates/onnx/tests/onnx/cases.rs reads."""

    def __init__(self, file):
        self.file = file

    def entry(self, path, data):
        for part in (path.encode(), data):
            self.file.write(struct.pack("<I", len(part)) + part)

    def add(self, name, model, inputs, outputs, rtol, atol):
        self.entry(f"{name}/model.onnx", model)
        self.entry(f"{name}/tolerance", f"{rtol} {atol}".encode())
        for kind, values in (("input", inputs), ("output", outputs)):
            for place, value in enumerate(values):
                if not isinstance(value, onnx.TensorProto):
                    value = numpy_helper.from_array(np.asarray(value))
                self.entry(f"{name}/{kind}_{place}.pb", value.SerializeToString())


def reason_to_leave_out(model):
    for value in list(model.graph.input) + list(model.graph.output):
        kind = value.type.WhichOneof("value")
        if kind != "tensor_type":
            return kind.removesuffix("_type")
        element = onnx.TensorProto.DataType.Name(value.type.tensor_type.elem_type)
        if element in OTHER_TYPES:
            return element
    domains = {node.domain for node in model.graph.node} - {"", "ai.onnx"}
    return " ".join(sorted(domains)) or None


def node_tests():
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return load_model_tests(kind="node")


def text_image(height, width):
    """Black letters on white."""
    import cv2

    image = np.full((height, width, 3), 255, np.uint8)
    cv2.putText(image, "Volta 27", (4, int(height * 0.7)), cv2.FONT_HERSHEY_SIMPLEX, height / 60, (0, 0, 0), 2)
    return (image.transpose(2, 0, 1).astype(np.float32) / 255 - 0.5) / 0.5


def networks(cases):
    import rapidocr_onnxruntime

    folder = Path(rapidocr_onnxruntime.__file__).parent / "models"
    for name, shape in NETWORKS.items():
        file = folder / f"{name}.onnx"
        session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
        x = np.stack([text_image(*shape[2:])] * shape[0])
        found = session.run(None, {session.get_inputs()[0].name: x})
        cases.add(f"network {name}", file.read_bytes(), [x], found, 1e-4, 1e-4 * max(float(np.abs(y).max()) for y in found))


def write_cases(path):
    left_out = collections.Counter()
    with open(path, "wb") as file:
        cases = Cases(file)
        for test in node_tests():
            reason = reason_to_leave_out(test.model)
            if reason:
                left_out[reason] += 1
                continue
            inputs, outputs = test.data_sets[0]
            cases.add(test.name, test.model.SerializeToString(), inputs, outputs, test.rtol, test.atol)
        networks(cases)
    print("left out:", ", ".join(f"{count} {reason}" for reason, count in left_out.most_common()))


def check_verdicts(path):
    rows = [line.rstrip("\n").split("\t") for line in open(path)]
    failed = {name: verdict for name, verdict in rows if verdict != "ok"}
    wrong = [name for name in failed if name.startswith("network ")]
    nodes = [name for name, _ in rows if not name.startswith("network ")]
    passed = len(nodes) - sum(name in failed for name in nodes)
    print(f"{passed} of {len(nodes)} node tests pass, {len(NETWORKS) - len(wrong)} of {len(NETWORKS)} networks")
    page = (Path(__file__).resolve().parent.parent / "docs/onnx.md").read_text()
    listed = re.findall(r"`(test_[a-z0-9_{}*]+)`", page)
    patterns = [re.compile(re.escape(name).replace(r"\*", ".*") + r"\Z") for name in listed]
    for name, verdict in failed.items():
        if not any(pattern.match(name) for pattern in patterns):
            wrong.append(name)
            print(f"{name}: {verdict}")
    assert len(nodes) > 1500, f"only {len(nodes)} node tests were found"
    assert not wrong, f"{len(wrong)} fail that docs/onnx.md does not list"
    assert passed >= SHARE * len(nodes), "fewer pass than must"


def check_exported(path):
    for line in open(path):
        said = json.loads(line)
        onnx.checker.check_model(said["file"], full_check=True)
        session = onnxruntime.InferenceSession(said["file"], providers=["CPUExecutionProvider"])
        dtype = {"f32": np.float32, "i32": np.int32, "i64": np.int64}[said["dtype"]]
        x = np.array(said["input"], dtype).reshape(said["shape"])
        found, expected = session.run(None, {"x": x})[0].ravel(), np.array(said["output"])
        apart = float(np.abs(found - expected).max() / max(np.abs(expected).max(), 1e-30))
        print(f"{Path(said['file']).stem}: apart by {apart:.1e}")
        assert apart < 1e-4, said["file"]


if __name__ == "__main__":
    {"cases": write_cases, "verdicts": check_verdicts, "exported": check_exported}[sys.argv[1]](sys.argv[2])
