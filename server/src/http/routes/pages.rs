//! The pages for people, and what their buttons and scripts ask.

use super::super::page::{actions, find, host, job, new_data, new_job, pages, shared, sign_in};
use super::resource;
use actix_web::{
    middleware::Compress,
    web::{self, FormConfig, ServiceConfig, resource as open_resource},
};

/// The routes of all pages.
pub(super) fn routes(service: &mut ServiceConfig) {
    service
        .service(resource("/").route(web::get().to(pages::jobs)).wrap(Compress::default()))
        .service(
            resource("/compare").route(web::get().to(pages::compare)).wrap(Compress::default()),
        )
        .service(resource("/hosts").route(web::get().to(pages::hosts)).wrap(Compress::default()))
        .service(
            resource("/hosts/{host}")
                .route(web::get().to(host::host))
                .route(web::post().to(host::act))
                .wrap(Compress::default()),
        )
        .service(
            resource("/failures").route(web::get().to(host::failures)).wrap(Compress::default()),
        )
        .service(resource("/find").route(web::get().to(find::find)).wrap(Compress::default()))
        // Before the addresses of single jobs, of which it has the form.
        .service(
            resource("/jobs/new")
                .app_data(FormConfig::default().limit(new_job::MAX_FORM))
                .route(web::get().to(new_job::show))
                .route(web::post().to(new_job::submit)),
        )
        .service(resource("/jobs/new/data").route(web::post().to(new_data::begin)))
        .service(
            resource("/jobs/new/data/{upload}")
                .app_data(FormConfig::default().limit(new_job::MAX_FORM))
                .route(web::put().to(new_data::file))
                .route(web::post().to(new_data::submit))
                .route(web::get().to(new_data::show))
                .route(web::delete().to(new_data::abort)),
        )
        .service(resource("/jobs/new/data/{upload}/draft").route(web::post().to(new_data::draft)))
        .service(
            resource("/jobs/{job}")
                .route(web::get().to(job::overview))
                .route(web::post().to(actions::act))
                .wrap(Compress::default()),
        )
        .service(
            resource("/jobs/{job}/trials/{trial}")
                .route(web::get().to(job::trial))
                .wrap(Compress::default()),
        )
        .service(
            resource("/jobs/{job}/{tab}").route(web::get().to(job::tab)).wrap(Compress::default()),
        )
        .service(
            open_resource("/share")
                .route(web::get().to(shared::show))
                .route(web::post().to(shared::open)),
        )
        .service(
            resource("/share/{job}").route(web::get().to(shared::job)).wrap(Compress::default()),
        )
        .service(
            resource("/share/{job}/search")
                .route(web::get().to(shared::search))
                .wrap(Compress::default()),
        )
        .service(resource("/share/{job}/changes").route(web::get().to(shared::changes)))
        .service(
            open_resource("/sign-in")
                .route(web::get().to(sign_in::show))
                .route(web::post().to(sign_in::begin)),
        )
        .service(open_resource("/sign-out").route(web::post().to(sign_in::end)))
        .service(
            open_resource("/assets/{name}")
                .route(web::get().to(pages::asset))
                .wrap(Compress::default()),
        );
}
