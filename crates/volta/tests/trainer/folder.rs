//! The folder of a run: its history, its lock, and what happens to what is damaged there.

use super::*;
use volta::CheckpointFolder;
use volta::train::RunLock;
use volta_testing::test;

#[test]
fn the_first_row_after_a_checkpoint_is_about_the_steps_it_would_have_been_about() {
    let _alone = alone();
    for precision in [None, Some(DType::F16)] {
        let train_rows = |history: &History| -> Vec<(u64, String, u64)> {
            let rows = history.rows.iter().filter(|r| r.name.starts_with("train/"));
            rows.map(|r| (r.step, r.name.clone(), r.value.to_bits())).collect()
        };
        let folder = Folder::new("first-row");
        let part = |steps, resume| TrainerOptions {
            steps: Some(steps),
            resume,
            precision,
            folder: Some(folder.0.clone()),
            checkpoint_every: Some(7),
            ..silent()
        };
        // Steps 21 to 33 are made, and a row out of turn is written after the last of them.
        trained(part(33, false));
        let (history, _) = trained(part(60, true));
        let whole = train_rows(&trained(TrainerOptions { steps: Some(60), precision, ..silent() }).0);
        let resumed: Vec<_> = train_rows(&history).into_iter().filter(|row| row.0 != 33).collect();
        assert_eq!(resumed, whole);
    }
}

/// Whoever looks at the old file while a run begins to go on sees all of it: it is not emptied first.
#[test]
fn a_run_that_goes_on_puts_a_whole_history_in_the_place_of_the_old_one() {
    use std::io::Read;
    let _alone = alone();
    let folder = Folder::new("whole-history");
    let options = |steps| TrainerOptions {
        steps: Some(steps),
        folder: Some(folder.0.clone()),
        resume: true,
        ..silent()
    };
    trained(options(20));
    let path = folder.0.join("metrics.csv");
    let (before, mut old) = (std::fs::read_to_string(&path).unwrap(), std::fs::File::open(&path).unwrap());
    trained(options(40));
    let mut seen = String::new();
    old.read_to_string(&mut seen).unwrap();
    assert_eq!(seen, before);
    assert!(std::fs::read_to_string(&path).unwrap().starts_with(&before));
}

#[test]
fn what_a_killed_run_left_unfinished_goes_when_it_goes_on() {
    let _alone = alone();
    let folder = Folder::new("unfinished");
    let options = |steps| TrainerOptions {
        steps: Some(steps),
        folder: Some(folder.0.clone()),
        resume: true,
        ..silent()
    };
    trained(options(3));
    let names =
        [".best.safetensors.1-0.unfinished", ".metrics.csv.1-0.unfinished", ".curves.svg.1-3.unfinished"];
    names.iter().for_each(|name| std::fs::write(folder.0.join(name), b"cut off").unwrap());
    trained(options(6));
    assert!(names.iter().all(|name| !folder.0.join(name).exists()));
}

#[test]
fn two_trainings_do_not_share_a_folder() {
    let _alone = alone();
    let folder = Folder::new("locked");
    let lock = RunLock::acquire(&folder.0).unwrap();
    let options = || TrainerOptions { folder: Some(folder.0.clone()), ..silent() };
    let error = fit(&network(), &mut points(64), options()).unwrap_err();
    assert!(error.message().contains(&format!("process {}", std::process::id())), "{error}");
    assert!(!folder.0.join("metrics.csv").exists());
    let model = network();
    let mut adam = Adam::new(model.parameters(), 0.01, (0.9, 0.999), 1e-8, 0.0);
    let mut trainer = Trainer::new(&model, &mut adam, options()).with_lock(&lock);
    trainer.fit(&mut points(64), None, |x, y| Ok(classified(&model.try_forward(x)?, y))).unwrap();
}

#[test]
fn a_run_goes_on_from_the_checkpoint_before_a_damaged_one_and_says_so() {
    let _alone = alone();
    let folder = Folder::new("damaged");
    let options = |steps| TrainerOptions {
        steps: Some(steps),
        folder: Some(folder.0.clone()),
        resume: true,
        checkpoint_every: Some(5),
        ..silent()
    };
    trained(options(10));
    let path = CheckpointFolder::open(folder.0.join("checkpoints")).unwrap().path_of(10);
    for damage in [&b""[..], b"cut off", &std::fs::read(&path).unwrap()[..200]] {
        std::fs::write(&path, damage).unwrap();
        let model = network();
        let mut adam = Adam::new(model.parameters(), 0.01, (0.9, 0.999), 1e-8, 0.0);
        let mut told = Vec::new();
        Trainer::new(&model, &mut adam, options(10))
            .with_schedule(CosineAnnealingLR::new(200, 0.0))
            .with_observer(|event| {
                match event {
                    Event::PassedOver { path, reason } => told.push(format!("{} {reason}", path.display())),
                    Event::Resumed { step, .. } => told.push(step.to_string()),
                    _ => {}
                }
                Ok(())
            })
            .fit(&mut points(320), Some(&mut points(64)), |x, y| Ok(classified(&model.try_forward(x)?, y)))
            .unwrap();
        assert!(told[0].starts_with(path.to_str().unwrap()) && told[1..] == ["5"], "{told:?}");
    }
    let parameters: Vec<_> = {
        let model = network();
        let saved = CheckpointFolder::open(folder.0.join("checkpoints")).unwrap().last().unwrap().unwrap();
        saved.restore_module("model", &model).unwrap();
        model.parameters().iter().map(Tensor::to_vec::<f32>).collect()
    };
    assert_eq!(parameters, trained(TrainerOptions { steps: Some(10), ..silent() }).1);
}
