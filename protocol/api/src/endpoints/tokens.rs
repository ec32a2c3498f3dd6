//! Tokens, and links to the page of a job.

use sojourn_protocol::{
    ids::{JobId, TokenId},
    quotas::TokenQuotas,
    tokens::{
        NewToken, PageLinkRequest, RevokedToken, RotatedToken, ServerToken, TokenRequest, TokenView,
    },
};

endpoints! {
    TOKENS = "tokens";

    /// Issues a token: for machines that enrol as hosts of an owner, or for a user.
    CreateToken: POST "/v1/tokens" for Users(Administer) {
        takes TokenRequest;
        answers NewToken = "The token, with its secret, which the server doesn't keep.";
        fails NotFound, Conflict;
    }

    /// Every token that was issued, without its secret.
    Tokens: GET "/v1/tokens" for Users(Administer) {
        answers [TokenView] = "All tokens.";
    }

    /// Gives a token another secret. The one before opens nothing any more.
    RotateToken: POST "/v1/tokens/" {token: TokenId = "The token."} "/rotate" for Users(Administer) {
        answers NewToken = "The token, with its new secret.";
        fails NotFound, Conflict;
    }

    /// Sets bounds of what the jobs of a user's token may take. Those that are left out stay as they were.
    SetQuotas: POST "/v1/tokens/" {token: TokenId = "The token."} "/quotas" for Users(Administer) {
        takes TokenQuotas;
        answers TokenView = "The token with its quotas.";
        fails NotFound, Conflict;
    }

    /// Revokes a token and all hosts that have enrolled with it; their leases go to others.
    RevokeToken: POST "/v1/tokens/" {token: TokenId = "The token."} "/revoke" for Users(Administer) {
        answers RevokedToken = "The token and its hosts, revoked.";
        fails NotFound;
    }

    /// Replaces a token of the server itself. The one before opens nothing any more.
    RotateServerToken: POST "/v1/tokens/server/" {which: ServerToken = "Which of the server's own tokens."} "/rotate" for Users(Administer) {
        answers RotatedToken = "The new token.";
    }
}

endpoints! {
    PAGE_LINKS = "shares";

    /// Every link to a job's page, without its secret.
    Shares: GET "/v1/jobs/" {job: JobId = "The job."} "/shares" for Users(Submit) {
        answers [TokenView] = "The links to the job's page.";
        fails NotFound;
    }

    /// Makes a link to a job's page: a token that opens `/share#SECRET` in a browser, and nothing else.
    ShareJob: POST "/v1/jobs/" {job: JobId = "The job."} "/shares" for Users(Submit) {
        takes PageLinkRequest;
        answers NewToken = "The token, with its secret, which the server doesn't keep.";
        fails NotFound, Conflict;
    }

    /// Revokes a link to a job's page.
    RevokeShare: POST "/v1/jobs/" {job: JobId = "The job."} "/shares/" {token: TokenId = "The token of the link."} "/revoke" for Users(Submit) {
        answers RevokedToken = "The token, revoked.";
        fails NotFound;
    }
}
