//! The macro that reads rows of the table.
//!
//! ```text
//!   endpoints! {
//!       JOBS = "jobs";                                    the rows' constant, and their group in the document
//!
//!       /// Lets a job stand still until it is resumed.
//!       PauseJob: POST "/v1/jobs/" {job: JobId = "The job."} "/pause" for Users(Submit) {
//!           query NAME: TYPE = "..";                      parameters of the query, all optional
//!           header [optional] "NAME": TYPE = "..";
//!           takes PauseRequest [within MAX_LARGE_BODY];   a JSON body; or `uploads "..";` for bytes
//!           answers JobView = "The job, paused.";         a JSON answer, `[JobView]` for a list; or, for each status that isn't JSON,
//!                                                         `gives 206 "TYPE OF CONTENT" = ".." [with "HEADER" = ".."];`
//!           fails NotFound, Conflict;                     errors beside those that each endpoint has
//!       }
//!   }
//! ```

macro_rules! endpoints {
    (
        $group:ident = $tag:literal;
        $(
            $(#[doc = $about:literal])+
            $name:ident: $method:ident
                $( $segment:literal $( {$part:ident: $part_type:ty = $part_about:literal} )? )+
                for $callers:ident $( ($right:ident) )?
            {
                $( query $query:ident: $query_type:ty = $query_about:literal; )*
                $( header $( $optional:ident )? $header:literal: $header_type:ty = $header_about:literal; )*
                $( takes $body:tt $( within $max_body:ident )?; )?
                $( uploads $upload:literal; )?
                $( answers $answer:tt = $answer_about:literal; )?
                $( gives $status:literal $( $content:literal )? = $given:literal
                    $( with $given_header:literal = $given_about:literal )?; )*
                $( fails $( $error:ident ),+; )?
            }
        )+
    ) => {
        pub(super) const $group: &[crate::Operation] = &[$( <$name as crate::Endpoint>::OPERATION ),+];
        $(
            $(#[doc = $about])+
            #[derive(Debug, Clone, Copy)]
            pub struct $name;

            impl crate::Endpoint for $name {
                type Body = endpoints!(@body $($body)? $($upload)?);
                type Answer = endpoints!(@answer $($answer)?);
                const OPERATION: crate::Operation = crate::Operation {
                    name: stringify!($name),
                    tag: $tag,
                    method: crate::Method::$method,
                    pattern: concat!($( $segment $(, "{", stringify!($part), "}")? ),+),
                    callers: crate::Callers::$callers $( (sojourn_protocol::tokens::Rights::$right) )?,
                    max_body: endpoints!(@limit $($( $max_body )?)?),
                    errors: &[$($( sojourn_protocol::error::ErrorKind::$error ),+)?],
                    about: &[$( $about ),+],
                    #[cfg(feature = "openapi")]
                    forms: |schemas| crate::schemas::Forms {
                        parameters: vec![
                            $($( schemas.parameter::<$part_type>("path", stringify!($part), true, $part_about), )?)+
                            $( schemas.parameter::<$query_type>("query", stringify!($query), false, $query_about), )*
                            $( schemas.parameter::<$header_type>(
                                "header", $header, endpoints!(@required $($optional)?), $header_about,
                            ), )*
                        ],
                        body: endpoints!(@form schemas $(, json $body)? $(, bytes $upload)?),
                        answers: vec![
                            $( (200, endpoints!(@json schemas $answer_about, $answer)), )?
                            $( ($status, schemas.other_answer(
                                $given,
                                endpoints!(@optional $($content)?),
                                endpoints!(@optional $(($given_header, $given_about))?),
                            )), )*
                        ],
                    },
                };
            }

            impl $name {
                /// The path below the server's address.
                #[must_use]
                pub fn path($($( $part: $part_type, )?)+) -> String {
                    let path = [$( $segment.to_owned(), $( $part.to_string(), )? )+].concat();
                    path.trim_start_matches('/').to_owned()
                }

                endpoints!(@request [$($( $part: $part_type, )?)+] $($body)? $($upload)?);
            }

            endpoints!(@queries $name $( $query: $query_type = $query_about; )*);
        )+
    };

    (@body) => { () };
    (@body $upload:literal) => { crate::Raw };
    (@body $body:tt) => { $body };

    (@answer) => { crate::Raw };
    (@answer [$item:ident]) => { Vec<$item> };
    (@answer $answer:ident) => { $answer };

    (@limit) => { crate::operation::MAX_BODY };
    (@limit $limit:ident) => { crate::operation::$limit };

    (@required) => { true };
    (@required optional) => { false };

    (@optional) => { None };
    (@optional $value:expr) => { Some($value) };

    (@form $schemas:ident) => { None };
    (@form $schemas:ident, json $body:ident) => { Some($schemas.json_body::<$body>()) };
    (@form $schemas:ident, bytes $upload:literal) => { Some($schemas.bytes_body($upload)) };

    (@json $schemas:ident $about:literal, [$item:ident]) => { $schemas.json_list::<$item>($about) };
    (@json $schemas:ident $about:literal, $answer:ident) => { $schemas.json_answer::<$answer>($about) };

    (@request [$($part:ident: $part_type:ty,)*]) => {
        /// The request.
        #[must_use]
        pub fn request($($part: $part_type),*) -> crate::Request<'static, Self> {
            crate::Request::new(Self::path($($part),*), None)
        }
    };
    // The client sends the bytes in parts, and goes on where a part was lost.
    (@request [$($part:ident: $part_type:ty,)*] $upload:literal) => {};
    (@request [$($part:ident: $part_type:ty,)*] $body:ident) => {
        /// The request.
        #[must_use]
        pub fn request($($part: $part_type,)* body: &$body) -> crate::Request<'_, Self> {
            crate::Request::new(Self::path($($part),*), Some(body))
        }
    };

    (@queries $name:ident) => {};
    (@queries $name:ident $( $query:ident: $query_type:ty = $about:literal; )+) => {
        impl crate::Request<'_, $name> {
            $(
                #[doc = $about]
                #[must_use]
                pub fn $query(self, $query: $query_type) -> Self {
                    self.with(stringify!($query), $query)
                }
            )+
        }
    };
}
