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

pub(super) async fn set_quotas(
    app: App,
    by: UserBy,
    token: web::Path<TokenId>,
    Body(quotas): Body<TokenQuotas>,
) -> JsonResult<TokenView> {
    app.answer(request::SetQuotas { token: *token, quotas, by: by.0 }).await
}

pub(super) async fn rotate(app: App, _: User, token: web::Path<TokenId>) -> JsonResult<NewToken> {
    let (secret, sha256) = new_secret()?;
    let token = app.shell.request(request::RotateToken { token: *token, sha256 }).await?;
    Ok(JsonAnswer(NewToken { secret, token }))
}

pub(super) async fn revoke(
    app: App,
    by: UserBy,
    token: web::Path<TokenId>,
) -> JsonResult<RevokedToken> {
    app.answer(request::RevokeToken { token: *token, of: None, by: Some(by.0) }).await
}

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
