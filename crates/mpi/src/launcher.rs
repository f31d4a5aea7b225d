//! Whether a launcher has started this process as one of several.

/// What launchers call the number of processes: Open MPI; Hydra, which comes with MPICH and Intel's; MVAPICH.
const SIZES: [&str; 3] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE"];

/// What `srun` says, and whether it does so for MPI: a plain `srun` of one program that is no rank has no server for them.
const SLURM_SIZE: &str = "SLURM_NTASKS";
const SLURM_SERVERS: [&str; 3] = ["PMIX_RANK", "PMIX_NAMESPACE", "PMI_RANK"];

/// How many processes a launcher has started, as its variables say; nothing without one. Processes by themselves need no MPI.
pub fn launched_size() -> Option<usize> {
    size_in(|name| std::env::var(name).ok())
}

fn size_in(variable: impl Fn(&str) -> Option<String>) -> Option<usize> {
    let number = |name: &str| variable(name)?.trim().parse().ok();
    SIZES.iter().find_map(|name| number(name)).or_else(|| {
        let has_server = SLURM_SERVERS.iter().any(|name| variable(name).is_some());
        number(SLURM_SIZE).filter(|_| has_server)
    })
}

#[cfg(test)]
mod tests {
    use super::size_in;

    /// A process's variables.
    type Variables = &'static [(&'static str, &'static str)];

    #[test]
    fn launchers_are_known_by_their_variables() {
        let table: [(Variables, Option<usize>); 6] = [
            (&[], None),
            (&[("OMPI_COMM_WORLD_SIZE", "4")], Some(4)),
            (&[("PMI_SIZE", "2"), ("PMI_RANK", "0")], Some(2)),
            (&[("SLURM_NTASKS", "8"), ("PMIX_RANK", "3")], Some(8)),
            // Within a batch script, before `srun`.
            (&[("SLURM_NTASKS", "8")], None),
            (&[("OMPI_COMM_WORLD_SIZE", "many")], None),
        ];
        for (variables, size) in table {
            let variable = |name: &str| {
                variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_string())
            };
            assert_eq!(size_in(variable), size, "{variables:?}");
        }
    }
}
