//! What a fine-tuning leaves: adapters or a model, a page, and a line of the log.

use super::options::Options;
use super::prepare::Prepared;
use crate::lm::html_report::Page;
use crate::lm::log;
use crate::lm::report::Times;
use crate::lm::run_paths::Places;
use crate::lm::train::cannot_write;
use crate::output::{Failure, Output};
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use volta::io::GgufType;
use volta::io::write_file;
use volta::nn::num_parameters;
use volta::train::History;
use volta::{DType, Device};
use volta_lm::About;
use volta_lm::config::quoted;
use volta_lm::finetune::Learner;

/// A run that has ended.
pub struct Ended<'a> {
    pub options: &'a Options,
    pub prepared: &'a Prepared,
    pub places: &'a Places,
    pub settings: &'a Map<String, Value>,
    pub device: Device,
}

impl Ended<'_> {
    /// Writes everything and says how it went; the number of the last step.
    pub fn keep(
        &self,
        history: History,
        mut times: Times,
        peak_bytes: usize,
        samples: Vec<(u64, String)>,
        output: Output,
    ) -> Result<u64, Failure> {
        let Ended { options, prepared, places, settings, device } = self;
        times.peak_bytes = peak_bytes;
        let step = samples.last().map_or(0, |sample| sample.0);
        let about = About::of(&history, step, &device.to_string());
        let result = self.result()?;
        let loss = |loss: Option<f64>| loss.map_or("-".to_string(), |loss| format!("{loss:.4}"));
        let summary = format!(
            "{} numbers of {} trained on {} samples of {}; {step} steps on {device}; training loss {}, validation loss {}.",
            num_parameters(&Learner(&prepared.llm)),
            options.model,
            prepared.samples,
            options.data.display(),
            loss(about.train_loss),
            loss(about.valid_loss)
        );
        let config = format!("{:#}", Value::Object((*settings).clone()));
        let page = Page {
            name: &places.name,
            date: &about.date,
            summary: &summary,
            history: &history,
            times: &times,
            samples: &samples,
            config: &config,
        };
        write_file(&places.page, page.html())?;
        let epochs = prepared.pace.epochs(step);
        let walked = epochs - prepared.pace.epochs(step.saturating_sub(times.steps));
        let line = log::Line {
            date: &about.date,
            device: &about.device,
            data: &options.data.display().to_string(),
            model: &places.name,
            steps: step,
            epochs,
            epoch_seconds: if walked > 0.0 { times.training.as_secs_f64() / walked } else { 0.0 },
            tokens_per_second: times.tokens_per_second(),
            train_loss: about.train_loss,
            valid_loss: about.valid_loss,
            path: &result,
        };
        log::add(&places.log, &line).map_err(|e| cannot_write(&places.log, &e))?;
        if let Some((_, text)) = samples.last() {
            output.note(format_args!("\n--- it writes now:\n{}\n---\n", text.trim_end()));
        }
        output.note(&times);
        let json = json!({
            "event": "finished", "name": places.name, "device": about.device, "result": result, "report": places.page,
            "steps": step, "train_loss": about.train_loss, "valid_loss": about.valid_loss, "profile": times.json(),
            "sample": samples.last().map(|sample| &sample.1),
        });
        if output.json {
            output.event(&json);
        } else {
            output.note(format_args!(
                "\n{summary}\n{} {}\nReport {}\nTalk with it: {}",
                if prepared.lora.is_some() { "Adapters" } else { "Model" },
                result.display(),
                places.page.display(),
                self.command(&result)
            ));
        }
        Ok(step)
    }

    /// Writes the adapters, or the model.
    fn result(&self) -> Result<PathBuf, Failure> {
        let Prepared { llm, lora, path, .. } = self.prepared;
        if let (Some(lora), Some(model)) = (lora, llm.causal_lm()) {
            let folder = self.places.folder.join("adapter");
            lora.save(model, &folder, &self.options.model)?;
            return Ok(folder);
        }
        if path.is_dir() {
            let folder = self.places.folder.join("model");
            llm.save_folder(path, &folder, DType::F32)?;
            return Ok(folder);
        }
        let file = self.places.folder.join("model.gguf");
        llm.save_gguf(path, &file, GgufType::F16)?;
        Ok(file)
    }

    /// The command that talks with what came of it.
    fn command(&self, result: &std::path::Path) -> String {
        let result = quoted(&result.display().to_string());
        match self.prepared.lora {
            Some(_) => format!("volta chat {} --adapter {result}", quoted(&self.options.model)),
            None => format!("volta chat {result}"),
        }
    }
}
