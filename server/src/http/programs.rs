//! Programs for machines that start for the first time. Anybody may fetch them: they have no secrets, and the machine has no
//! token yet that opens anything but its enrolment.

use super::{App, JsonAnswer, JsonResult, error::HttpError, guard::caller};
use actix_web::{HttpRequest, HttpResponse, body::SizedStream, http::header::ContentType, web};
use bytes::Bytes;
use futures::stream;
use sojourn_protocol::{digest::Digest, error::ErrorKind, view::ProgramView};
use std::io;
use tokio::{fs::File, io::AsyncReadExt as _};

/// Bytes that are read at once.
const CHUNK: usize = 256 << 10;

pub(super) async fn all(app: App, from: HttpRequest) -> JsonResult<Vec<ProgramView>> {
    admit(&app, &from)?;
    Ok(JsonAnswer(app.programs.iter().map(|program| program.view.clone()).collect()))
}

/// Refuses an address that asks too often: anybody may ask, and a program is hundreds of megabytes.
fn admit(app: &App, from: &HttpRequest) -> Result<(), HttpError> {
    app.network.fetch_program(caller(from)).map_err(|wait| {
        let message = "programs are fetched faster than the server allows";
        HttpError::new(ErrorKind::TooManyRequests, message).retry_after(wait)
    })
}

pub(super) async fn one(
    app: App,
    from: HttpRequest,
    sha256: web::Path<Digest>,
) -> Result<HttpResponse, HttpError> {
    admit(&app, &from)?;
    let found = app.programs.iter().find(|program| program.view.sha256 == *sha256);
    let unknown = || HttpError::new(ErrorKind::NotFound, format!("no program {sha256}"));
    let program = found.ok_or_else(unknown)?;
    let file = File::open(&program.path).await.map_err(|error| HttpError::fault(&error))?;
    let chunks = stream::try_unfold(file, async |mut file| {
        let mut chunk = vec![0; CHUNK];
        let read = file.read(&mut chunk).await?;
        chunk.truncate(read);
        Ok::<_, io::Error>((read > 0).then(|| (Bytes::from(chunk), file)))
    });
    let body = SizedStream::new(program.view.bytes, chunks);
    Ok(HttpResponse::Ok().content_type(ContentType::octet_stream()).body(body))
}
