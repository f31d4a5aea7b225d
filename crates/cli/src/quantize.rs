//! `volta quantize`: the matrices of a file in 4 or 8 bits.

use super::output::{Failure, Outcome, Output};
use serde_json::json;
use std::path::{Path, PathBuf};
use volta::io::{Entry, Gguf, GgufType, GgufWriter, Metadata, save_safetensors};
use volta::{BlockFormat, Device, QuantizedMatrix, StateDict, Weights};

#[derive(clap::Args)]
pub struct Options {
    /// A GGUF, safetensors or PyTorch file, or a folder from Hugging Face.
    from: PathBuf,
    /// The file to write: NAME.gguf, or NAME.safetensors for Volta's own layers.
    to: PathBuf,
    /// What matrices become; everything else stays as it is.
    #[arg(long = "type", value_enum, default_value_t = Kind::Q4_0)]
    kind: Kind,
}

/// The types that are written.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Kind {
    /// 4 bits a weight and a scale for 32: 4.5 bits.
    #[value(name = "q4_0")]
    Q4_0,
    /// 4 bits with a scale and a minimum: 5 bits.
    #[value(name = "q4_1")]
    Q4_1,
    /// 8 bits and a scale: 8.5 bits.
    #[value(name = "q8_0")]
    Q8_0,
    /// Halves; GGUF alone.
    #[value(name = "f16")]
    F16,
}

impl Kind {
    fn in_files(self) -> GgufType {
        match self {
            Kind::Q4_0 => GgufType::Q4_0,
            Kind::Q4_1 => GgufType::Q4_1,
            Kind::Q8_0 => GgufType::Q8_0,
            Kind::F16 => GgufType::F16,
        }
    }
}

/// Whether a tensor is a matrix of floats that consists of blocks.
fn is_quantised(entry: &Entry, kind: GgufType) -> bool {
    let block = kind.block().0;
    let matrix = matches!(entry.shape(), [rows, columns] if *rows > 0 && *columns > 0 && columns.is_multiple_of(block));
    matrix && entry.dtype().is_some_and(|dtype| dtype.is_float())
}

/// Writes the file, and says how large it was and is.
pub fn run(options: &Options, output: Output) -> Outcome {
    let file = Gguf::open_if(&options.from)?;
    let weights = match &file {
        Some(file) => file.weights()?,
        None => Weights::open(&options.from)?,
    };
    let ending = options.to.extension().and_then(|e| e.to_str());
    let changed = match ending {
        Some("gguf") => to_gguf(options, file.as_ref(), &weights)?,
        Some("safetensors") => to_safetensors(options, &weights)?,
        _ => {
            let to = options.to.display();
            return Err(Failure::Usage(format!("{to} must end with .gguf or .safetensors")));
        }
    };
    let before: usize = weights.entries().iter().map(Entry::bytes).sum();
    let after = std::fs::metadata(&options.to).map_or(0, |about| about.len());
    let (from, to) = (shown(&options.from), shown(&options.to));
    output.result(
        &json!({ "from": from, "to": to, "matrices": changed, "bytes_before": before, "bytes": after }),
        format_args!(
            "{to}: {changed} matrices are {}; {} MB of {} MB",
            options.kind.in_files().name(),
            after / 1_000_000,
            before / 1_000_000
        ),
    );
    Ok(())
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn to_gguf(options: &Options, file: Option<&Gguf>, weights: &Weights) -> Result<usize, Failure> {
    let kind = options.kind.in_files();
    let mut writer = GgufWriter::new();
    match file {
        Some(file) => writer.set_all(file.metadata()),
        None => weights.metadata().iter().for_each(|(key, text)| writer.set(key, text.as_str())),
    }
    if let Some(number) = kind.file_type() {
        writer.set("general.file_type", number);
    }
    writer.set("general.quantization_version", 2u32);
    let mut changed = 0;
    for entry in weights.entries() {
        let name = entry.name();
        let same =
            file.and_then(|file| file.find(name)).filter(|t| t.kind() == kind || !is_quantised(entry, kind));
        match (file, same) {
            (Some(file), Some(_)) => writer.copy(file, name, name)?,
            _ if is_quantised(entry, kind) => {
                let tensor = weights.tensor(name, Device::Cpu)?;
                match options.kind {
                    Kind::F16 => writer.tensor(name, &tensor, kind)?,
                    _ => {
                        writer.quantized(name, &QuantizedMatrix::quantize(&tensor, format(options.kind)?)?)?
                    }
                }
                changed += 1;
            }
            _ => writer.tensor(name, &weights.tensor(name, Device::Cpu)?, GgufType::F32)?,
        }
    }
    writer.write(&options.to)?;
    Ok(changed)
}

/// Matrices are written as the words and scales that `QuantizedLinear` has.
fn to_safetensors(options: &Options, weights: &Weights) -> Result<usize, Failure> {
    let format = format(options.kind)?;
    let kind = options.kind.in_files();
    let (mut state, mut changed) = (StateDict::new(), 0);
    for entry in weights.entries() {
        let name = entry.name();
        let tensor = weights.tensor(name, Device::Cpu)?;
        if is_quantised(entry, kind) {
            let matrix = QuantizedMatrix::quantize(&tensor, format)?;
            state.insert(format!("{name}.words"), matrix.words().clone());
            state.insert(format!("{name}.scales"), matrix.scales().clone());
            changed += 1;
        } else {
            state.insert(name, tensor);
        }
    }
    let mut about: Metadata = weights.metadata().clone();
    about.insert("quantized".to_string(), format.name().to_string());
    save_safetensors(&options.to, &state, &about)?;
    Ok(changed)
}

fn format(kind: Kind) -> Result<BlockFormat, Failure> {
    let halves =
        || Failure::Usage("--type f16 is written as GGUF: name a file that ends with .gguf".to_string());
    kind.in_files().block_format().ok_or_else(halves)
}
