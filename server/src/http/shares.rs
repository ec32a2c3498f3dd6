//! Links to a job's page that need no user's token: made, listed and revoked by whoever may submit.
//!
//! A link is a token that shows one job. Its secret is behind the `#` of the address, which browsers send to nobody.

use super::{
    App, AppState, JsonAnswer, JsonResult,
    auth::{User, UserBy},
    error::HttpError,
    request_body::Body,
    tokens,
};
use actix_web::web;
use sojourn_core::request;
use sojourn_protocol::{
    ids::{JobId, TokenId},
    tokens::{NewToken, RevokedToken, ShareRequest, TokenGrant, TokenRequest, TokenView},
};

/// Makes a link to a job's page: a token that opens `/share#SECRET` in a browser, and nothing else.
#[utoipa::path(
    post,
    path = "/v1/jobs/{job}/shares",
    operation_id = "shareJob",
    params(("job" = JobId, Path, description = "The job.")),
    request_body = ShareRequest,
    responses((status = 200, description = "The token, with its secret, which the server doesn't keep.", body = NewToken)),
    security(("admin" = []))
)]
pub(super) async fn create(
    app: App,
    by: UserBy,
    job: web::Path<JobId>,
    Body(request): Body<ShareRequest>,
) -> JsonResult<NewToken> {
    tokens::issue(&app, token_request(*job, request), by.0).await.map(JsonAnswer)
}

/// Every link to a job's page, without its secret.
#[utoipa::path(
    get,
    path = "/v1/jobs/{job}/shares",
    operation_id = "shares",
    params(("job" = JobId, Path, description = "The job.")),
    responses((status = 200, description = "The links to the job's page.", body = Vec<TokenView>)),
    security(("admin" = []))
)]
pub(super) async fn all(app: App, _: User, job: web::Path<JobId>) -> JsonResult<Vec<TokenView>> {
    app.shell.request(request::GetJob { job: *job }).await?;
    of(&app, *job).await.map(JsonAnswer)
}

/// Revokes a link to a job's page.
#[utoipa::path(
    post,
    path = "/v1/jobs/{job}/shares/{token}/revoke",
    operation_id = "revokeShare",
    params(
        ("job" = JobId, Path, description = "The job."),
        ("token" = TokenId, Path, description = "The token of the link."),
    ),
    responses((status = 200, description = "The token, revoked.", body = RevokedToken)),
    security(("admin" = []))
)]
pub(super) async fn revoke(
    app: App,
    by: UserBy,
    path: web::Path<(JobId, TokenId)>,
) -> JsonResult<RevokedToken> {
    let (job, token) = *path;
    app.answer(request::RevokeToken { token, of: Some(job), by: Some(by.0) }).await
}

/// The token for a link.
pub(super) fn token_request(job: JobId, request: ShareRequest) -> TokenRequest {
    let ShareRequest { label, lifetime } = request;
    TokenRequest { label, grant: TokenGrant::Share { job }, lifetime }
}

/// The links to a job's page.
pub(super) async fn of(app: &AppState, job: JobId) -> Result<Vec<TokenView>, HttpError> {
    let mut tokens = app.shell.request(request::GetTokens {}).await?;
    tokens.retain(|token| token.grant.shared_job() == Some(job));
    Ok(tokens)
}
