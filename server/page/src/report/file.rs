//! A page that is one file: its styles and scripts are in it, and a browser may load nothing else.

use crate::assets;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest as _, Sha256};

const STYLES: [&str; 2] = ["page.css", "uplot.css"];
/// In the order in which they run.
const SCRIPTS: [&str; 3] = ["uplot.js", "charts.js", "report.js"];
/// The licence of uPlot, which goes with every copy of it.
const LICENCE: &str = include_str!("../../assets/vendor/uplot.LICENSE");

/// The whole page. `data`: JSON for its script, by the id of its element.
pub(super) fn page(title: &str, content: &Markup, (id, data): (&str, &str)) -> Markup {
    let (styles, scripts) = (STYLES.map(content_of), SCRIPTS.map(content_of));
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy(&styles, &scripts));
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="dark light";
                title { (title) }
                link rel="icon" href="data:,";
                @for style in styles { style { (PreEscaped(style)) } }
            }
            body {
                main #main { (content) }
                // A browser doesn't run it: it is no script by its type.
                script type="application/json" id=(id) { (PreEscaped(for_element(data))) }
                (PreEscaped(format!("<!-- uPlot, which draws the charts:\n{LICENCE}-->")))
                @for script in scripts { script { (PreEscaped(script)) } }
            }
        }
    }
}

fn content_of(name: &str) -> &'static str {
    assets::find(name).map_or("", |asset| asset.content)
}

/// The policy: these styles and scripts, by their digests, and nothing else.
fn policy(styles: &[&str], scripts: &[&str]) -> String {
    let (styles, scripts) = (sources(styles), sources(scripts));
    format!(
        "default-src 'none'; script-src {scripts}; style-src {styles}; img-src data:; form-action 'none'; base-uri 'none'"
    )
}

fn sources(contents: &[&str]) -> String {
    let source = |content: &&str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(content)));
    contents.iter().map(source).collect::<Vec<_>>().join(" ")
}

/// JSON that can't end the element which it is in.
fn for_element(json: &str) -> String {
    json.replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_its_scripts_in_it_and_a_policy_that_allows_no_other() {
        let text = page("a job", &html! { p { "text" } }, ("trials", "[\"</script>\"]")).0;
        for name in STYLES.iter().chain(&SCRIPTS) {
            assert!(!content_of(name).is_empty(), "{name}");
            assert!(text.contains(content_of(name)), "{name}");
            assert!(
                !content_of(name).to_lowercase().contains("</s"),
                "{name} would end its element"
            );
        }
        assert_eq!(text.matches("'sha256-").count(), STYLES.len() + SCRIPTS.len());
        assert!(text.contains("default-src 'none'") && !text.contains("unsafe"));
        assert!(text.contains("[\"\\u003c/script>\"]"), "data stays data");
        assert!(!text.contains(" src=") && text.matches("href=").count() == 1, "nothing is loaded");
    }

    #[test]
    fn a_source_is_a_digest_in_base64() {
        // `printf 'alert(1)' | openssl dgst -sha256 -binary | base64`
        assert_eq!(sources(&["alert(1)"]), "'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI='");
    }
}
