//! What the page around a tab's module needs: promises, and how far shaders are compiled.
//!
//! In a tab a panic ends the module where it stands: nothing unwinds, and what waits in JavaScript would wait for ever.
//! [`promise`] makes promises of futures that are rejected then, with the panic's message.

use js_sys::{Error, Function, Promise};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::panic::{PanicHookInfo, set_hook, take_hook};
use std::sync::Once;
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::spawn_local;

thread_local! {
    /// The functions that reject the promises that wait, by number.
    static WAITING: RefCell<BTreeMap<u64, Function>> = const { RefCell::new(BTreeMap::new()) };
}

#[cfg(feature = "gpu")]
pub use volta_gpu::on_compile;

/// The future's result as a promise, which a page can await. A panic rejects it, in whichever future it happens, as the module
/// cannot go on then; the page shows the message and starts anew, from the last checkpoint if it kept one.
///
/// ```no_run
/// # use wasm_bindgen::JsValue;
/// # async fn train() -> volta::Result<f64> { Ok(0.0) }
/// pub fn start() -> js_sys::Promise {
///     volta::tab::promise(async {
///         let loss = train().await.map_err(|error| js_sys::Error::new(&error.to_string()))?;
///         Ok(JsValue::from(loss))
///     })
/// }
/// ```
pub fn promise(future: impl Future<Output = Result<JsValue, JsValue>> + 'static) -> Promise {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |panic| {
            before(panic);
            reject_all(panic);
        }));
    });
    let mut future = Some(future);
    Promise::new(&mut |resolve, reject| {
        let Some(future) = future.take() else { return };
        let number = WAITING.with_borrow_mut(|waiting| {
            let number = waiting.last_key_value().map_or(0, |(last, _)| last + 1);
            waiting.insert(number, reject.clone());
            number
        });
        spawn_local(async move {
            let result = future.await;
            WAITING.with_borrow_mut(|waiting| waiting.remove(&number));
            // These two are the promise's own, and do not fail.
            let _ = match result {
                Ok(value) => resolve.call1(&JsValue::UNDEFINED, &value),
                Err(error) => reject.call1(&JsValue::UNDEFINED, &error),
            };
        });
    })
}

fn reject_all(panic: &PanicHookInfo<'_>) {
    let waiting =
        WAITING.try_with(|waiting| waiting.try_borrow_mut().map(|mut all| std::mem::take(&mut *all)));
    let error = Error::new(&panic.to_string());
    for reject in waiting.into_iter().flatten().flat_map(BTreeMap::into_values) {
        let _ = reject.call1(&JsValue::UNDEFINED, &error);
    }
}
