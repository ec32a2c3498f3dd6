//! `#[derive(EventFields)]`: the facts of an event that follow from its variant and its fields, so that they are said once.
//!
//! | method | gives |
//! |---|---|
//! | `name()` | the variant's name in kebab case |
//! | `job()` | the field `job`, or the expression of `#[event(job = ..)]` |
//! | `lease()` | the field `lease`, or the expression of `#[event(lease = ..)]` |
//! | `ends_lease()` | whether the variant has `#[event(ends_lease)]` |
//!
//! An expression begins with a field's name: `#[event(job = unit.job())]`. It is an id, or an `Option` of one.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::quote;
use syn::{Data, DeriveInput, Error, Fields, Result, Variant, parse::ParseStream};

/// See the crate's text.
#[proc_macro_derive(EventFields, attributes(event))]
pub fn event_fields(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let parsed = syn::parse(input);
    parsed.and_then(|input| methods(&input)).unwrap_or_else(Error::into_compile_error).into()
}

/// The settings of one variant.
#[derive(Default)]
struct Settings {
    job: Option<TokenStream>,
    lease: Option<TokenStream>,
    ends_lease: bool,
}

impl Settings {
    fn of(variant: &Variant) -> Result<Self> {
        let mut settings = Self::default();
        for attribute in variant.attrs.iter().filter(|of| of.path().is_ident("event")) {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("ends_lease") {
                    settings.ends_lease = true;
                } else if meta.path.is_ident("job") {
                    settings.job = Some(expression(meta.value()?)?);
                } else if meta.path.is_ident("lease") {
                    settings.lease = Some(expression(meta.value()?)?);
                } else {
                    return Err(meta.error("one of `job`, `lease` and `ends_lease` is wanted"));
                }
                Ok(())
            })?;
        }
        Ok(settings)
    }
}

/// The tokens up to the next comma.
fn expression(input: ParseStream<'_>) -> Result<TokenStream> {
    let mut tokens = TokenStream::new();
    while !input.is_empty() && !input.peek(syn::Token![,]) {
        tokens.extend([input.parse::<TokenTree>()?]);
    }
    Ok(tokens)
}

/// The match arm of a variant that gives an id: of an expression, or of the field with this name.
fn id_arm(variant: &Variant, field: &str, said: Option<TokenStream>) -> Result<TokenStream> {
    let name = &variant.ident;
    let has_field =
        |of: &Ident| variant.fields.iter().any(|field| field.ident.as_ref() == Some(of));
    let field = Ident::new(field, Span::call_site());
    let (bound, value) = match said {
        Some(tokens) => {
            let first = tokens.clone().into_iter().next();
            let Some(TokenTree::Ident(first)) = first.filter(|_| !tokens.is_empty()) else {
                return Err(Error::new_spanned(tokens, "the name of a field is wanted first"));
            };
            (first, tokens)
        }
        None if has_field(&field) => (field.clone(), quote!(*#field)),
        None => return Ok(quote!(Self::#name { .. } => None,)),
    };
    Ok(quote!(Self::#name { #bound, .. } => Option::from(#value),))
}

fn methods(input: &DeriveInput) -> Result<TokenStream> {
    let Data::Enum(data) = &input.data else {
        return Err(Error::new_spanned(input, "events are an enumeration"));
    };
    let (mut names, mut jobs, mut leases, mut ends) = (vec![], vec![], vec![], vec![]);
    for variant in &data.variants {
        if matches!(variant.fields, Fields::Unnamed(_)) {
            return Err(Error::new_spanned(variant, "fields of events have names"));
        }
        let Settings { job, lease, ends_lease } = Settings::of(variant)?;
        let (ident, name) = (&variant.ident, kebab(&variant.ident.to_string()));
        names.push(quote!(Self::#ident { .. } => #name,));
        jobs.push(id_arm(variant, "job", job)?);
        leases.push(id_arm(variant, "lease", lease)?);
        ends.push(quote!(Self::#ident { .. } => #ends_lease,));
    }
    let ident = &input.ident;
    Ok(quote! {
        impl #ident {
            /// The event's kind, as journals and `sojourn events` name it.
            #[must_use]
            pub const fn name(&self) -> &'static str {
                match self { #(#names)* }
            }

            /// The job that the event names by itself, without the state.
            #[must_use]
            pub fn job(&self) -> Option<JobId> {
                match self { #(#jobs)* }
            }

            /// The lease that the event names first.
            #[must_use]
            pub fn lease(&self) -> Option<LeaseId> {
                match self { #(#leases)* }
            }

            /// Whether hardly any later event names the lease again.
            #[must_use]
            pub const fn ends_lease(&self) -> bool {
                match self { #(#ends)* }
            }
        }
    })
}

/// `HostEnrolled` becomes `host-enrolled`.
fn kebab(name: &str) -> String {
    let mut words = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !words.is_empty() {
            words.push('-');
        }
        words.extend(letter.to_lowercase());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(input: TokenStream) -> String {
        let written = syn::parse2(input).and_then(|input| methods(&input));
        written.map_or_else(|error| error.to_string(), |tokens| tokens.to_string())
    }

    #[test]
    fn fields_and_expressions_give_ids() {
        let written = written(quote! {
            enum Event {
                JobPaused { job: JobId },
                #[event(job = unit.job(), lease = report.lease, ends_lease)]
                Mixed { unit: UnitKey, report: Report },
                Nothing,
            }
        });
        for part in [
            quote!(Self::JobPaused { .. } => "job-paused",),
            quote!(Self::JobPaused { job, .. } => Option::from(*job),),
            quote!(Self::Mixed { unit, .. } => Option::from(unit.job()),),
            quote!(Self::Mixed { report, .. } => Option::from(report.lease),),
            quote!(Self::Mixed { .. } => true,),
            quote!(Self::Nothing { .. } => None,),
        ] {
            assert!(written.contains(&part.to_string()), "{part}\n{written}");
        }
    }

    #[test]
    fn an_unknown_setting_and_other_shapes_are_refused() {
        let unknown = written(quote!(
            enum Event {
                #[event(host = x)]
                A { job: JobId },
            }
        ));
        assert!(unknown.contains("one of `job`, `lease` and `ends_lease`"), "{unknown}");
        let empty = written(quote!(
            enum Event {
                #[event(job = 1)]
                A { job: JobId },
            }
        ));
        assert!(empty.contains("the name of a field"), "{empty}");
        assert!(
            written(quote!(
                struct Event;
            ))
            .contains("an enumeration")
        );
        assert!(
            written(quote!(
                enum Event {
                    A(JobId),
                }
            ))
            .contains("have names")
        );
    }
}
