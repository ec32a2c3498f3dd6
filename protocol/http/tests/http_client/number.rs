//! A call that is answered with a number.

use reqwest::Method;
use sojourn_http::Call;

pub(crate) struct Number;

impl Call for Number {
    type Answer = u32;

    fn method(&self) -> Method {
        Method::GET
    }

    fn path(&self) -> &str {
        "v1/x"
    }
}
