//! The feature levels the kernels are compiled for, and the choice among them.

use super::float::Float;
use super::lanes::Lanes;

/// A feature level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Level {
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    Portable,
}

/// Something to run with the vector type of a level.
pub(super) trait WithLanes<T: Float> {
    fn run<L: Lanes<Elem = T>>(self);
}

impl Level {
    /// The best level of this machine (the standard library remembers the look-up).
    pub(super) fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            let avx512 = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512dq");
            if avx2 && avx512 {
                return Self::Avx512;
            }
            if avx2 {
                return Self::Avx2;
            }
        }
        Self::Portable
    }

    /// Every level this machine can run.
    #[cfg(test)]
    pub(super) fn available() -> Vec<Self> {
        #[cfg(target_arch = "x86_64")]
        {
            let all = [Self::Portable, Self::Avx2, Self::Avx512];
            let best = all.iter().position(|&l| l == Self::best());
            all[..=best.expect("the best level is one of them")].to_vec()
        }
        #[cfg(not(target_arch = "x86_64"))]
        vec![Self::Portable]
    }

    /// Runs `work` with the vector type of this level.
    pub(super) fn with<T: Float, W: WithLanes<T>>(self, work: W) {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => work.run::<T::Avx512>(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => work.run::<T::Avx2>(),
            Self::Portable => work.run::<T::Portable>(),
        }
    }
}
