//! What a test says as it panics is kept, and shown only if the test fails: many panic on purpose.

use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};

thread_local! {
    static SAID: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Keeps what is said on threads of tests; elsewhere it is printed as ever.
pub(crate) fn keep() {
    let print = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let kept = SAID.try_with(|said| {
            let mut said = said.try_borrow_mut().ok()?;
            *said.as_mut()? += &format!("{info}\n");
            Some(())
        });
        if !matches!(kept, Ok(Some(()))) {
            print(info);
        }
    }));
}

/// Runs a test; what it said, if it panicked.
pub(crate) fn heard(run: fn(), captures: bool) -> Result<(), String> {
    SAID.set(captures.then(String::new));
    let result = panic::catch_unwind(AssertUnwindSafe(run));
    let said = SAID.take().unwrap_or_default();
    result.map_err(|_| said)
}
