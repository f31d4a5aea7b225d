//! `volta inspect` of an ONNX file.

use super::{Folder, Value, ok, volta};
use volta_testing::test;

#[test]
fn onnx_files_tell_what_they_take_and_compute() {
    let folder = Folder::new("onnx");
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/../onnx/tests/onnx/fixtures/images.onnx");
    let printed = ok(&volta(&folder).args(["inspect", fixture]).output().unwrap());
    for part in ["x float (batch, 3, height, width)", "Conv", "head.weight", "ai.onnx 17"] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    let lines = ok(&volta(&folder).args(["inspect", "--json", fixture]).output().unwrap());
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["opsets"]["ai.onnx"], 17);
    assert!(lines.iter().any(|line| line["input"] == "x" && line["shape"][1] == "3"));
    assert!(
        lines.iter().any(|line| line["operator"] == "Gemm" && line["count"] == 1 && line["known"] == true)
    );
    assert!(lines.iter().any(|line| line["name"] == "head.weight" && line["dtype"] == "float"));

    std::fs::write(folder.0.join("broken.onnx"), b"no file of ONNX").unwrap();
    let broken = volta(&folder).args(["inspect", "broken.onnx"]).output().unwrap();
    let said = String::from_utf8_lossy(&broken.stderr);
    assert!(!broken.status.success() && said.contains("no ONNX file"), "{said}");
}
