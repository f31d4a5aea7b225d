//! Fewer loops for the same walk.

use super::kernel::{MapKernel, Step};
use super::view::Affine;

impl MapKernel {
    /// Every position and check in it.
    pub fn forms_mut(&mut self) -> Vec<&mut Affine> {
        let mut forms: Vec<&mut Affine> = Vec::new();
        for i in &mut self.code {
            match &mut i.step {
                Step::Load { access, checks, .. } => {
                    forms.push(&mut access.position);
                    forms.extend(checks.iter_mut().map(|c| &mut c.form));
                }
                Step::Gather { access, .. } => forms.push(&mut access.position),
                Step::Iota(form) => forms.push(form),
                Step::Random { counter, .. } => forms.push(counter),
                Step::Valid(checks) => forms.extend(checks.iter_mut().map(|c| &mut c.form)),
                _ => {}
            }
        }
        forms.extend(self.stores.iter_mut().map(|s| &mut s.access.position));
        forms
    }

    /// Some iterations of a loop.
    pub fn part(&self, which: usize, range: std::ops::Range<usize>) -> MapKernel {
        let mut kernel = self.clone();
        kernel.extents[which] = range.len();
        for form in kernel.forms_mut() {
            form.offset += form.coefficients[which] * range.start as isize;
        }
        kernel
    }

    /// Drops loops of one iteration and merges neighbours that every access walks through in one go.
    pub fn simplified(&self) -> MapKernel {
        let mut kernel = self.clone();
        let mut groups: Vec<Vec<usize>> = Vec::new();
        let mut forms = kernel.forms_mut();
        for (l, &extent) in self.extents.iter().enumerate() {
            if extent == 1 {
                continue;
            }
            let joins = groups.last().is_some_and(|g: &Vec<usize>| {
                let before = g[g.len() - 1];
                let same_side = (before < self.outer) == (l < self.outer);
                same_side
                    && forms.iter().all(|f| f.coefficients[before] == f.coefficients[l] * extent as isize)
            });
            match groups.last_mut() {
                Some(g) if joins => g.push(l),
                _ => groups.push(vec![l]),
            }
        }
        for f in &mut forms {
            f.coefficients = groups.iter().map(|g| f.coefficients[g[g.len() - 1]]).collect();
        }
        kernel.outer = groups.iter().filter(|g| g[0] < self.outer).count();
        kernel.extents = groups.iter().map(|g| g.iter().map(|&l| self.extents[l]).product()).collect();
        kernel
    }
}
