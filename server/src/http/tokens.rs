//! Tokens that the server issues, and its own: made, listed, replaced and revoked by operators.

use super::{
    App, AppState, JsonAnswer, JsonResult,
    auth::{User, UserBy},
    error::HttpError,
    request_body::Body,
};
use crate::{data_folder::new_token, tokens::TokensError};
use actix_web::web;
use sojourn_core::request;
use sojourn_protocol::{
    digest::Digest,
    error::ErrorKind,
    ids::TokenId,
    quotas::TokenQuotas,
    tokens::{NewToken, RevokedToken, RotatedToken, ServerToken, TokenRequest, TokenView},
};

/// Issues a token: for machines that enrol as hosts of an owner, or for a user.
#[utoipa::path(
    post,
    path = "/v1/tokens",
    operation_id = "createToken",
    request_body = TokenRequest,
    responses((status = 200, description = "The token, with its secret, which the server doesn't keep.", body = NewToken)),
    security(("admin" = []))
)]
pub(super) async fn create(
    app: App,
    by: UserBy,
    Body(request): Body<TokenRequest>,
) -> JsonResult<NewToken> {
    issue(&app, request, &by).await.map(JsonAnswer)
}

/// Issues a token with a new secret.
pub(super) async fn issue(
    app: &AppState,
    request: TokenRequest,
    by: &UserBy,
) -> Result<NewToken, HttpError> {
    let (secret, sha256) = new_secret()?;
    let create = request::CreateToken { request, sha256, by: Some(by.0) };
    let token = app.shell.request(by.asks(create)).await?;
    Ok(NewToken { secret, token })
}

/// Every token that was issued, without its secret.
#[utoipa::path(
    get,
    path = "/v1/tokens",
    operation_id = "tokens",
    responses((status = 200, description = "All tokens.", body = Vec<TokenView>)),
    security(("admin" = []))
)]
pub(super) async fn all(app: App, _: User) -> JsonResult<Vec<TokenView>> {
    let mut tokens = app.shell.request(request::GetTokens {}).await?;
    for token in &mut tokens {
        let failures = app.failed_requests.in_this_minute(token.token);
        if let Some(quotas) = &mut token.quotas {
            quotas.used.failures = failures;
        }
    }
    Ok(JsonAnswer(tokens))
}

/// Sets bounds of what the jobs of a user's token may take. Those that are left out stay as they were.
#[utoipa::path(
    post,
    path = "/v1/tokens/{token}/quotas",
    operation_id = "setQuotas",
    params(("token" = TokenId, Path, description = "The token.")),
    request_body = TokenQuotas,
    responses((status = 200, description = "The token with its quotas.", body = TokenView)),
    security(("admin" = []))
)]
pub(super) async fn set_quotas(
    app: App,
    by: UserBy,
    token: web::Path<TokenId>,
    Body(quotas): Body<TokenQuotas>,
) -> JsonResult<TokenView> {
    app.answer(request::SetQuotas { token: *token, quotas, by: by.0 }).await
}

/// Gives a token another secret. The one before opens nothing any more.
#[utoipa::path(
    post,
    path = "/v1/tokens/{token}/rotate",
    operation_id = "rotateToken",
    params(("token" = TokenId, Path, description = "The token.")),
    responses((status = 200, description = "The token, with its new secret.", body = NewToken)),
    security(("admin" = []))
)]
pub(super) async fn rotate(app: App, _: User, token: web::Path<TokenId>) -> JsonResult<NewToken> {
    let (secret, sha256) = new_secret()?;
    let token = app.shell.request(request::RotateToken { token: *token, sha256 }).await?;
    Ok(JsonAnswer(NewToken { secret, token }))
}

/// Revokes a token and all hosts that have enrolled with it; their leases go to others.
#[utoipa::path(
    post,
    path = "/v1/tokens/{token}/revoke",
    operation_id = "revokeToken",
    params(("token" = TokenId, Path, description = "The token.")),
    responses((status = 200, description = "The token and its hosts, revoked.", body = RevokedToken)),
    security(("admin" = []))
)]
pub(super) async fn revoke(
    app: App,
    by: UserBy,
    token: web::Path<TokenId>,
) -> JsonResult<RevokedToken> {
    app.answer(request::RevokeToken { token: *token, of: None, by: Some(by.0) }).await
}

/// Replaces a token of the server itself. The one before opens nothing any more.
#[utoipa::path(
    post,
    path = "/v1/tokens/server/{which}/rotate",
    operation_id = "rotateServerToken",
    params(("which" = ServerToken, Path, description = "Which of the server's own tokens.")),
    responses((status = 200, description = "The new token.", body = RotatedToken)),
    security(("admin" = []))
)]
pub(super) async fn rotate_own(
    app: App,
    _: User,
    which: web::Path<ServerToken>,
) -> JsonResult<RotatedToken> {
    // A server that stands by refuses, and names the active one.
    app.shell.request(request::GetPosition {}).await?;
    let (tokens, which) = (app.tokens.clone(), *which);
    let secret = web::block(move || tokens.rotate(which)).await?;
    let secret = secret.map_err(|error| match error {
        TokensError::NotActive => HttpError::new(ErrorKind::Unavailable, error.to_string()),
        other => HttpError::fault(&other),
    })?;
    tracing::warn!(token = which.name(), "one of the server's own tokens was replaced");
    Ok(JsonAnswer(RotatedToken { secret }))
}

fn new_secret() -> Result<(String, Digest), HttpError> {
    let secret = new_token().map_err(|error| HttpError::fault(&error))?;
    let sha256 = Digest::of(secret.as_bytes());
    Ok((secret, sha256))
}
