//! Calls of crates that may panic over what a file says: the panic is an error of the file, and nothing is printed.

use sojourn_protocol::text::plain_line;
use std::{
    any::Any,
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook},
    sync::Once,
};

/// Most characters of a reason.
pub(crate) const MAX_REASON: usize = 200;

thread_local! {
    /// Does the thread run a call whose panic is caught?
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Returns what `run` returns; the reason where it panics. What it worked on must not be used any more then.
pub(crate) fn guarded<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    forward_other_panics();
    let outer = IS_GUARDED.replace(true);
    let returned = catch_unwind(AssertUnwindSafe(run));
    IS_GUARDED.set(outer);
    returned.map_err(|panic| plain_line(&said(panic.as_ref()), MAX_REASON))
}

/// The hook of the process prints every panic, caught or not. So one is put before it, once, which leaves out those that are caught
/// here.
fn forward_other_panics() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let hook = take_hook();
        set_hook(Box::new(move |panic| {
            if !IS_GUARDED.get() {
                hook(panic);
            }
        }));
    });
}

fn said(panic: &(dyn Any + Send)) -> String {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (None, Some(text)) => text.clone(),
        (None, None) => "no reason is known".to_owned(),
    }
}
