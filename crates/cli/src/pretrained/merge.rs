//! `volta merge`: a model with adapters added to its weights, as files of its own.

use super::{Adapter, called, find};
use crate::device::DeviceFlag;
use crate::output::{Failure, Outcome, Output};
use serde_json::json;
use std::path::PathBuf;
use volta::DType;
use volta::io::GgufType;
use volta::models::WeightStorage;

#[derive(clap::Args)]
pub struct Options {
    /// The model: a folder as Hugging Face has it, a GGUF file, or hf:OWNER/NAME.
    #[arg(long, short)]
    model: String,
    #[command(flatten)]
    adapter: Adapter,
    /// Where the result goes: NAME.gguf, or a folder for what is a folder.
    #[arg(long, short)]
    output: PathBuf,
    /// What matrices become [default: f16 in a GGUF file, bf16 in a folder]
    #[arg(long = "type", value_enum)]
    kind: Option<Kind>,
    #[command(flatten)]
    device: DeviceFlag,
}

/// The types that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    /// 4 bits a weight and a scale for 32; GGUF alone.
    #[value(name = "q4_0")]
    Q4_0,
    /// 8 bits and a scale; GGUF alone.
    #[value(name = "q8_0")]
    Q8_0,
    #[value(name = "f16")]
    F16,
    #[value(name = "bf16")]
    Bf16,
    #[value(name = "f32")]
    F32,
}

impl Kind {
    fn in_gguf(self) -> GgufType {
        match self {
            Kind::Q4_0 => GgufType::Q4_0,
            Kind::Q8_0 => GgufType::Q8_0,
            Kind::F16 => GgufType::F16,
            Kind::Bf16 => GgufType::BF16,
            Kind::F32 => GgufType::F32,
        }
    }

    fn in_folder(self) -> Result<DType, Failure> {
        match self {
            Kind::F16 => Ok(DType::F16),
            Kind::Bf16 => Ok(DType::BF16),
            Kind::F32 => Ok(DType::F32),
            Kind::Q4_0 | Kind::Q8_0 => Err(Failure::Usage(
                "a folder holds f16, bf16 or f32; q4_0 and q8_0 are for GGUF files".into(),
            )),
        }
    }
}

/// Merges and writes.
pub fn run(options: &Options, output: Output) -> Outcome {
    options.device.open()?;
    let Some(path) = find(Some(&options.model))? else {
        return Err(Failure::Failed(format!(
            "{} is no folder with a config.json and no GGUF file",
            options.model
        )));
    };
    let to_file = options.output.extension().is_some_and(|e| e.eq_ignore_ascii_case("gguf"));
    if !to_file && !path.is_dir() {
        return Err(Failure::Usage(
            "a GGUF file is merged into a GGUF file: name one, NAME.gguf, by --output".into(),
        ));
    }
    let kind = options.kind.unwrap_or(if to_file { Kind::F16 } else { Kind::Bf16 });
    if !to_file {
        kind.in_folder()?;
    }
    let (mut llm, lora) = options.adapter.load(&path, WeightStorage::Floats)?;
    if let (Some(lora), Some(model)) = (lora, llm.causal_lm_mut()) {
        lora.merge(model)?;
    }
    match to_file {
        true => llm.save_gguf(&path, &options.output, kind.in_gguf())?,
        false => llm.save_folder(&path, &options.output, kind.in_folder()?)?,
    }
    let to = options.output.display();
    output.result(
        &json!({ "model": called(&path), "output": options.output }),
        format_args!(
            "{to} is {} with its adapters in its weights. Talk with it: volta chat {to}",
            called(&path)
        ),
    );
    Ok(())
}
