//! Whether all ranks want the same: found out before the first step.

use super::world::World;
use crate::error::{Result, bail};

/// An error on all ranks, the same one, if any of these values is not that of rank 0 everywhere.
///
/// ```
/// use volta::parallel::{ThreadWorld, agree};
///
/// let results = ThreadWorld::run(2, |world| {
///     let rate = if world.rank() == 0 { "0.1" } else { "0.2" };
///     agree(&*world, &[("batch", "16".to_string()), ("learning-rate", rate.to_string())])
/// });
/// let error = results.into_iter().nth(1).unwrap().unwrap_err();
/// assert!(error.message().contains("learning-rate is 0.2, and 0.1 on rank 0"));
/// ```
pub fn agree(world: &dyn World, values: &[(&str, String)]) -> Result<()> {
    if world.size() == 1 {
        return Ok(());
    }
    let mut mine = world.host();
    for (name, value) in values {
        mine += &format!("{SEPARATOR}{name}{SEPARATOR}{value}");
    }
    let all = world.gather_texts(&mine)?;
    let all: Vec<Vec<&str>> = all.iter().map(|text| text.split(SEPARATOR).collect()).collect();
    let (first, others) = all.split_first().expect("there is a rank");
    let mut differences = Vec::new();
    for (rank, other) in (1..).zip(others) {
        let host = other[0];
        for (here, there) in first[1..].chunks(2).zip(other[1..].chunks(2)) {
            if here != there {
                let [name, value] = there else { continue };
                differences.push(format!(
                    "rank {rank} on {host}: {name} is {}, and {} on rank 0",
                    shown(value),
                    shown(here.get(1).copied().unwrap_or_default())
                ));
            }
        }
        if first.len() != other.len() {
            differences.push(format!("rank {rank} on {host}: it runs another program than rank 0"));
        }
    }
    if differences.is_empty() {
        return Ok(());
    }
    let more = differences.len().saturating_sub(MAX_DIFFERENCES);
    differences.truncate(MAX_DIFFERENCES);
    if more > 0 {
        differences.push(format!("and {more} more"));
    }
    bail!(
        Argument,
        "the ranks do not want the same; start all of them alike:\n  {}",
        differences.join("\n  ")
    )
}

/// What stands in no value.
const SEPARATOR: char = '\u{1f}';

/// How many differences are told.
const MAX_DIFFERENCES: usize = 12;

fn shown(value: &str) -> &str {
    if value.is_empty() { "not given" } else { value }
}
