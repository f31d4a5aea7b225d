//! What wgpu does not ask of a browser: to compile a pipeline beside everything else. wgpu calls `createComputePipeline` alone,
//! and everything that the device is asked for afterwards waits until that is done, what the page shows included.

use js_sys::{Array, Function, Object, Promise, Proxy, Reflect, global};
use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;
use wasm_bindgen::prelude::{Closure, JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;

/// What `make` calls to create a pipeline.
const CREATE: &str = "createComputePipeline";
/// What is called instead.
const CREATE_ASIDE: &str = "createComputePipelineAsync";

/// The pipeline that `make` creates, compiled while everything else goes on; or why there is none. It is asked for at once,
/// whenever the future is.
pub(crate) fn compiled_aside(
    make: impl Fn() -> wgpu::ComputePipeline,
) -> impl Future<Output = Result<wgpu::ComputePipeline, String>> {
    let asked: Rc<RefCell<Option<Promise>>> = Rc::default();
    let answer = asked.clone();
    let ask = move |device: JsValue, arguments: Array| {
        *answer.borrow_mut() = create_aside(&device, &arguments);
        // In the place of a pipeline that nobody uses.
        JsValue::UNDEFINED
    };
    let intercepted = intercept(ask, &make);
    // Heard from now on: a promise that is rejected before anybody listens is an error of the page.
    let compiling = intercepted.and_then(|_| asked.take()).map(JsFuture::from);
    async move {
        // Without the call there is the one that wgpu knows.
        let Some(compiling) = compiling else { return Ok(make()) };
        let compiled = compiling.await.map_err(|error| message(&error))?;
        intercept(move |_, _| compiled.clone(), &make)
            .ok_or_else(|| "the page has no GPUDevice any more".into())
    }
}

fn create_aside(device: &JsValue, arguments: &Array) -> Option<Promise> {
    let create: Function = Reflect::get(device, &CREATE_ASIDE.into()).ok()?.dyn_into().ok()?;
    create.apply(device, arguments).ok()?.dyn_into().ok()
}

/// Why a promise was rejected.
fn message(error: &JsValue) -> String {
    let message = Reflect::get(error, &"message".into()).ok().and_then(|message| message.as_string());
    message.unwrap_or_else(|| format!("{error:?}"))
}

/// Calls `call` while `answer` takes the place of the method that creates pipelines, and hears which device it was called on,
/// with what. Nothing, if there is no such method.
fn intercept<R>(
    mut answer: impl FnMut(JsValue, Array) -> JsValue + 'static,
    call: impl FnOnce() -> R,
) -> Option<R> {
    let name = JsValue::from(CREATE);
    let class = Reflect::get(&global(), &"GPUDevice".into()).ok()?;
    let prototype: Object = Reflect::get(&class, &"prototype".into()).ok()?.dyn_into().ok()?;
    let original: Function = Reflect::get(&prototype, &name).ok()?.dyn_into().ok()?;
    // A function of Rust's is not told on what it is called; a proxy's is.
    let apply = Closure::<dyn FnMut(JsValue, JsValue, Array) -> JsValue>::new(
        move |_: JsValue, device: JsValue, arguments: Array| answer(device, arguments),
    );
    let handler = Object::new();
    Reflect::set(&handler, &"apply".into(), apply.as_ref()).ok()?;
    let proxy = Proxy::new(&original, &handler);
    Reflect::set(&prototype, &name, &proxy).ok()?;
    let result = call();
    Reflect::set(&prototype, &name, &original).ok()?;
    Some(result)
}
