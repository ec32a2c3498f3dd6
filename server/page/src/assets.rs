//! Scripts and styles, compiled in. Their addresses name their content, so that a browser keeps them for ever.

use sha2::{Digest as _, Sha256};
use std::sync::LazyLock;

/// A file that pages load.
#[derive(Debug)]
pub struct Asset {
    /// The file's name.
    pub name: &'static str,
    /// The file's media type.
    pub media_type: &'static str,
    /// The file's content.
    pub content: &'static str,
    /// The digest at the end of the file's address: another content has another one.
    pub digest: String,
}

const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";

static ALL: LazyLock<Vec<Asset>> = LazyLock::new(|| {
    let files = [
        ("page.css", CSS, include_str!("../assets/page.css")),
        ("uplot.css", CSS, include_str!("../assets/vendor/uplot.css")),
        ("live.js", JAVASCRIPT, include_str!("../assets/live.js")),
        ("keys.js", JAVASCRIPT, include_str!("../assets/keys.js")),
        ("notify.js", JAVASCRIPT, include_str!("../assets/notify.js")),
        ("new.js", JAVASCRIPT, include_str!("../assets/new.js")),
        ("share.js", JAVASCRIPT, include_str!("../assets/share.js")),
        ("charts.js", JAVASCRIPT, include_str!("../assets/charts.js")),
        ("uplot.js", JAVASCRIPT, include_str!("../assets/vendor/uplot.js")),
        ("report.js", JAVASCRIPT, include_str!("../assets/report.js")),
        ("idiomorph.js", JAVASCRIPT, include_str!("../assets/vendor/idiomorph.js")),
    ];
    let asset = |(name, media_type, content): (_, _, &'static str)| {
        let digest = Sha256::digest(content);
        let digest = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        Asset { name, media_type, content, digest }
    };
    files.into_iter().map(asset).collect()
});

/// The file of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Asset> {
    ALL.iter().find(|asset| asset.name == name)
}

/// The address of the file of this name.
pub(crate) fn url(name: &str) -> String {
    let digest = find(name).map_or("", |asset| asset.digest.as_str());
    format!("/assets/{name}?{digest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_changes_with_its_content() {
        assert!(url("live.js").starts_with("/assets/live.js?"));
        assert_eq!(url("live.js").len(), "/assets/live.js?".len() + 16);
        assert_ne!(find("live.js").unwrap().digest, find("charts.js").unwrap().digest);
        assert!(find("other.js").is_none());
    }

    #[test]
    fn scripts_of_others_are_those_that_are_recorded() {
        let record = include_str!("../assets/vendor/README.md");
        for name in ["uplot.js", "uplot.css", "idiomorph.js"] {
            let digest = &find(name).unwrap().digest;
            assert!(record.contains(&format!("`{digest}")), "{name}: {digest}");
        }
    }
}
