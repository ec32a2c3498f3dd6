//! The trace of each request: the one that its header names, or one of its own.

use actix_web::{
    Error,
    body::MessageBody,
    dev::{ServiceRequest, ServiceResponse},
    middleware::Next,
};
use sojourn_http::{trace::Empty, traced};
use sojourn_protocol::trace::{TRACE_HEADER, TraceContext};

/// Middleware that runs each request in a span of its trace, until its answer begins.
pub(crate) async fn trace<B: MessageBody>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<B>, Error> {
    let header = request.headers().get(TRACE_HEADER).and_then(|value| value.to_str().ok());
    // A header that can't be read is as none (Trace Context, section 4.3).
    let parent: Option<TraceContext> = header.and_then(|header| header.parse().ok());
    let route = request.match_pattern();
    let (method, route) = (request.method().clone(), route.as_deref().unwrap_or_default());
    let traced = traced!(
        "request",
        parent,
        otel.name = %format_args!("{method} {route}"),
        otel.kind = "server",
        http.request.method = %method,
        http.route = route,
        http.response.status_code = Empty,
        error = Empty,
    );
    let span = traced.span().clone();
    let answer = traced.run(next.call(request)).await;
    let status = match &answer {
        Ok(answer) => answer.status(),
        Err(error) => error.as_response_error().status_code(),
    };
    span.record("http.response.status_code", status.as_u16());
    if status.is_server_error() {
        span.record("error", true);
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::{App, HttpResponse, middleware::from_fn, test, web};
    use sojourn_http::trace::current;

    const HEADER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    /// The trace in which a request with these headers is answered.
    async fn answered_in(headers: &[&str]) -> TraceContext {
        let say = || async {
            HttpResponse::Ok()
                .body(current().map(|context| context.to_string()).unwrap_or_default())
        };
        let app = App::new().wrap(from_fn(trace)).route("/v1/work", web::post().to(say));
        let app = test::init_service(app).await;
        let request = test::TestRequest::post().uri("/v1/work");
        let request = headers
            .iter()
            .fold(request, |request, value| request.append_header((TRACE_HEADER, *value)));
        let body = test::call_and_read_body(&app, request.to_request()).await;
        str::from_utf8(&body).unwrap().parse().unwrap()
    }

    #[actix_web::test]
    async fn a_request_is_answered_in_the_trace_that_its_header_names() {
        let named: TraceContext = HEADER.parse().unwrap();
        let answered = answered_in(&[HEADER]).await;
        assert_eq!(answered.trace, named.trace);
        assert_ne!(answered.span, named.span);
        assert!(!answered_in(&[&HEADER.replace("-01", "-00")]).await.is_sampled);
    }

    #[actix_web::test]
    async fn a_request_that_names_none_has_one_of_its_own() {
        let of_none = answered_in(&[]).await;
        assert_ne!(answered_in(&[]).await.trace, of_none.trace);
        for wrong in ["", "00", &HEADER.to_uppercase(), &"x".repeat(4000)] {
            let answered = answered_in(&[wrong]).await;
            assert_ne!(answered.trace.to_string(), "4bf92f3577b34da6a3ce929d0e0e4736", "{wrong}");
        }
    }
}
