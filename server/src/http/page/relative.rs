//! Links of pages behind a proxy: relative, so that the pages may lie under a path which only the proxy knows.
//!
//! ```text
//!   /jobs/7       the path that the proxy asks for
//!   href="/hosts" becomes href="../hosts", which is below the proxy's own path
//! ```
//!
//! Pages are written with addresses from the root. They, and where a browser is led on to, are changed here alone.

use crate::http::AppState;
use actix_web::{
    Error,
    body::{BoxBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderValue, LOCATION},
    middleware::Next,
    web,
};

/// The attributes of pages that have an address.
const ATTRIBUTES: [&str; 8] =
    ["href", "src", "action", "data-live", "data-changes", "data-probe", "data-root", "data-from"];
/// Below this address lie parts of the page at the other.
const PARTS: (&str, &str) = ("/jobs/new/data", "/jobs/new");

/// Makes the addresses in an answer relative, where a proxy is before the server.
///
/// # Errors
/// The errors of the service behind it.
pub(crate) async fn relative_links(
    mut request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let app = request.app_data::<web::Data<AppState>>();
    if !app.is_some_and(|app| app.network.is_behind_proxy()) {
        return Ok(next.call(request).await?.map_into_boxed_body());
    }
    let up = up(request.path());
    let wants_html = super::is_page(request.path())
        || request.headers().get(ACCEPT).is_some_and(|types| contains(types, "text/html"));
    if wants_html && !request.path().starts_with("/assets/") {
        // A packed page couldn't be changed. The proxy may pack it.
        request.headers_mut().remove(ACCEPT_ENCODING);
    }
    let mut answer = next.call(request).await?;
    let headers = answer.headers_mut();
    let to = headers.get(LOCATION).and_then(|to| to.to_str().ok()).and_then(from_root);
    let to = to.and_then(|to| HeaderValue::from_str(&format!("{up}{to}")).ok());
    if let Some(to) = to {
        headers.insert(LOCATION, to);
    }
    let is_html = headers.get(CONTENT_TYPE).is_some_and(|of| contains(of, "text/html"));
    let answer = answer.map_into_boxed_body();
    if !is_html {
        return Ok(answer);
    }
    Ok(answer.map_body(|_, body| match body.try_into_bytes() {
        Ok(page) => match std::str::from_utf8(&page) {
            Ok(text) => BoxBody::new(with_relative_links(text, &up)),
            Err(_) => BoxBody::new(page),
        },
        Err(body) => body,
    }))
}

fn contains(value: &HeaderValue, part: &str) -> bool {
    value.to_str().is_ok_and(|value| value.contains(part))
}

/// The way from a page's folder to the root: `./` or some `../`.
fn up(path: &str) -> String {
    let path = if path.starts_with(PARTS.0) { PARTS.1 } else { path };
    match path.matches('/').count() {
        0 | 1 => "./".to_owned(),
        slashes => "../".repeat(slashes - 1),
    }
}

/// The rest of an address that begins at the root of this server.
fn from_root(address: &str) -> Option<&str> {
    address.strip_prefix('/').filter(|rest| !rest.starts_with('/'))
}

/// A page with the addresses in its attributes relative. In texts there are no such quotes: they are escaped.
fn with_relative_links(page: &str, up: &str) -> String {
    let mut changed = String::with_capacity(page.len() + page.len() / 16);
    let mut rest = page;
    while let Some((before, after)) = rest.split_once("=\"/") {
        changed.push_str(before);
        let name = before.rsplit(|symbol: char| symbol.is_ascii_whitespace()).next();
        let is_address = name.is_some_and(|name| ATTRIBUTES.contains(&name));
        if is_address && !after.starts_with('/') {
            let (value, after) = after.split_once('"').unwrap_or((after, ""));
            // Some have several addresses, with blanks between.
            let value = value.replace(" /", &format!(" {up}"));
            changed.extend(["=\"", up, &value, "\""]);
            rest = after;
        } else {
            changed.push_str("=\"/");
            rest = after;
        }
    }
    changed.push_str(rest);
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_leads_up_to_the_root() {
        for (path, way) in [
            ("/", "./"),
            ("/hosts", "./"),
            ("/jobs/7", "../"),
            ("/share/7/search", "../../"),
            ("/jobs/new", "../"),
            ("/jobs/new/data/a1", "../"),
            ("/v1/docs", "../"),
        ] {
            assert_eq!(up(path), way, "{path}");
        }
    }

    #[test]
    fn addresses_in_attributes_are_relative_and_nothing_else_is() {
        let page = r#"<a href="/">a</a><form action="/jobs/new"><div data-from="/v1/a /v1/b" title="/x" value="/y"></div>
<a href="//evil">=&quot;/z</a><a href="https://a/b" data-live="/jobs/7?part=head">"#;
        let changed = r#"<a href="../">a</a><form action="../jobs/new"><div data-from="../v1/a ../v1/b" title="/x" value="/y"></div>
<a href="//evil">=&quot;/z</a><a href="https://a/b" data-live="../jobs/7?part=head">"#;
        assert_eq!(with_relative_links(page, "../"), changed);
        assert_eq!(with_relative_links("<p>none</p>", "./"), "<p>none</p>");
    }

    #[test]
    fn only_addresses_of_this_server_are_changed() {
        assert_eq!(from_root("/jobs/1"), Some("jobs/1"));
        assert_eq!(from_root("/"), Some(""));
        assert_eq!([from_root("//evil"), from_root("https://store/a")], [None, None]);
    }
}
