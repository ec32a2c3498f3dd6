//! The table `[ec2]`: what is refused, and the examples of its page.

use sojourn_ec2::{Ec2Settings, SettingsError};

const PLAIN: &str = r#"
fleet = "search"
user_data = "user-data.yaml"
types = ["c7i.*"]
[regions.eu-west-1]
image = "ami-0123456789abcdef0"
"#;

fn checked(text: &str) -> Result<(), String> {
    let settings: Ec2Settings = toml::from_str(text).map_err(|error| error.message().to_owned())?;
    settings.validate().map_err(|error: SettingsError| error.to_string())
}

#[test]
fn what_cannot_be_is_refused_with_what_is_wanted() {
    checked(PLAIN).unwrap();
    for (from, to, expected) in [
        ("fleet = \"search\"", "fleet = \"Search\"", "lower-case letters"),
        ("fleet = \"search\"", "fleet = \"search\"\nflet = 1", "unknown field `flet`"),
        ("image = ", "imag = ", "unknown field `imag`"),
        ("[\"c7i.*\"]", "[]", "1 to 100"),
        ("[\"c7i.*\"]", "[\"c7i\"]", "no type and no pattern"),
        ("[\"c7i.*\"]", "[\"C7i.large\"]", "no type and no pattern"),
        ("types", "root_volume_gib = 0\ntypes", "1 to 16384"),
        ("types", "endpoint = \"localhost\"\ntypes", "begins with `http://`"),
        ("types", "tags = { \"aws:x\" = \"y\" }\ntypes", "can't be a tag"),
        ("types", "tags = { \"sojourn:fleet\" = \"y\" }\ntypes", "can't be a tag"),
        ("eu-west-1]", "europe]", "no name of a region"),
        ("ami-0123456789abcdef0", "ubuntu", "an id like `ami-"),
        ("image = \"ami-0123456789abcdef0\"", "", "one of `image` and `launch_template`"),
        (
            "image =",
            "launch_template = { id = \"lt-1\", version = \"1\" }\nimage =",
            "one of `image`",
        ),
        (
            "image = \"ami-0123456789abcdef0\"",
            "launch_template = { id = \"lt-1\", version = \"1\" }\nkey_name = \"me\"",
            "`key_name` is said there",
        ),
        ("image =", "subnets = [\"sg-1\"]\nimage =", "an id like `subnet-"),
        ("image =", "security_groups = [\"default\"]\nimage =", "an id like `sg-"),
        ("image =", "zones = [\"us-east-1a\"]\nimage =", "no zone of eu-west-1"),
        ("image =", "on_demand = { \"c7i.large\" = 0.1 }\nimage =", "expected a string"),
        ("image =", "on_demand = { \"c7i.large\" = \"$0.1\" }\nimage =", "an amount of dollars"),
        ("[regions.eu-west-1]\nimage = \"ami-0123456789abcdef0\"", "[regions]", "names no region"),
    ] {
        let text = PLAIN.replacen(from, to, 1);
        assert_ne!(text, PLAIN, "{from}");
        let error = checked(&text).unwrap_err();
        assert!(error.contains(expected), "{to}: {error}");
    }
}

#[test]
fn a_server_that_cannot_be_is_refused_with_what_is_wanted() {
    let server = |keys: &str| format!("{PLAIN}[server]\nallowed = ['192.0.2.7/32']\n{keys}");
    let package =
        |url: &str, sha256: &str| format!("release = {{ url = '{url}', sha256 = '{sha256}' }}");
    let digest = "0".repeat(64);
    let good = package("https://example.org/a.tar.gz?x=1&y=%2F", &digest);
    for keys in
        ["", "zones = 6", "instance_type = 'm7i-flex.large'", "bucket = 's3://my-bucket/'", &good]
    {
        checked(&server(keys)).unwrap();
    }
    for (keys, expected) in [
        ("zone = 3", "unknown field `zone`"),
        ("zones = 0", "`ec2.server.zones` is 0; 1 to 6 is wanted"),
        ("instance_type = 'small'", "`ec2.server.instance_type` is `small`; a type as `t3.small`"),
        ("image = 'debian'", "`ec2.server.image` is `debian`; an id as"),
        ("disk_gib = 4", "`ec2.server.disk_gib` is 4; 8 to 16384"),
        ("price = '1'", "an amount of dollars"),
        ("bucket = 'my-bucket'", "`ec2.server.bucket` is `my-bucket`; a bucket as"),
        (&package("ftp://x", &digest), "`ec2.server.release` has a `url`"),
        (&package("https://x/$(id)", &digest), "`ec2.server.release` has a `url`"),
        (&package("https://x", "abc"), "isn't 64 hexadecimal digits"),
        (&format!("{good}\ndist = 'dist'"), "say again what `release` and `programs` say"),
    ] {
        let error = checked(&server(keys)).unwrap_err();
        assert!(error.contains(expected), "{keys}: {error}");
    }
    for network in ["192.0.2.7", "192.0.2.7/33", "home/8", "2001:db8::/32"] {
        let text = server("").replace("192.0.2.7/32", network);
        let error = checked(&text).unwrap_err();
        assert!(error.contains(&format!("`ec2.server.allowed` has `{network}`")), "{error}");
    }
}

#[test]
fn the_examples_of_the_page_are_settings() {
    let page = include_str!("../../../../docs/operate/ec2.md");
    let blocks: Vec<&str> = page.split("```").filter_map(|b| b.strip_prefix("toml\n")).collect();
    assert!(blocks.len() >= 2, "{}", blocks.len());
    for block in blocks {
        // As the autoscaler does it: the fleet's name is that of the file.
        let mut file: toml::Table = toml::from_str(block).unwrap();
        let fleet = file.remove("fleet").unwrap();
        let mut table = file["ec2"].as_table().unwrap().clone();
        table.insert("fleet".to_owned(), fleet);
        let settings: Ec2Settings =
            table.try_into().unwrap_or_else(|error| panic!("{block}\n{error}"));
        settings.validate().unwrap();
    }
}

#[test]
fn the_page_names_every_key() {
    let page = include_str!("../../../../docs/operate/ec2.md");
    let source = include_str!("../../src/settings/mod.rs");
    let server = include_str!("../../src/settings/server.rs");
    let body = |source: &'static str| source.split("SettingsError {").next().unwrap();
    let fields = body(source).lines().chain(body(server).lines());
    let fields = fields.filter_map(|line| line.strip_prefix("    pub ")?.split_once(':'));
    let fields: Vec<&str> = fields.map(|(name, _)| name).collect();
    assert!(fields.len() > 15, "{fields:?}");
    for field in fields {
        assert!(page.contains(&format!("`{field}`")), "`{field}` isn't on the page");
    }
}
