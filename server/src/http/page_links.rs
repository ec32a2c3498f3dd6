//! Links to a job's page that need no user's token: made, listed and revoked by whoever may change the job.
//!
//! A link is a token that shows one job. Its secret is behind the `#` of the address, which browsers send to nobody.

use super::{App, JsonAnswer, JsonResult, auth::UserBy, request_body::Body, tokens};
use actix_web::web;
use sojourn_core::request;
use sojourn_protocol::{
    ids::{JobId, TokenId},
    quotas::TokenQuotas,
    tokens::{NewToken, PageLinkRequest, RevokedToken, TokenGrant, TokenRequest, TokenView},
};

pub(super) async fn create(
    app: App,
    by: UserBy,
    job: web::Path<JobId>,
    Body(request): Body<PageLinkRequest>,
) -> JsonResult<NewToken> {
    tokens::issue(&app, token_request(*job, request), &by).await.map(JsonAnswer)
}

pub(super) async fn all(app: App, by: UserBy, job: web::Path<JobId>) -> JsonResult<Vec<TokenView>> {
    app.answer(by.asks(request::GetLinks { job: *job })).await
}

pub(super) async fn revoke(
    app: App,
    by: UserBy,
    path: web::Path<(JobId, TokenId)>,
) -> JsonResult<RevokedToken> {
    let (job, token) = *path;
    let revoke = request::RevokeToken { token, of: Some(job), by: Some(by.0) };
    app.answer(by.asks(revoke)).await
}

/// The token for a link.
pub(super) fn token_request(job: JobId, request: PageLinkRequest) -> TokenRequest {
    let PageLinkRequest { label, lifetime } = request;
    let quotas = TokenQuotas::default();
    TokenRequest { label, grant: TokenGrant::PageLink { job }, lifetime, quotas }
}
