//! A limit whose value may differ by the hour: `50`, or `{ "09:00-17:00" = 25, else = 100 }`.

use super::Hours;
use jiff::civil::DateTime;
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error as _, MapAccess, SeqAccess, Visitor},
    ser::SerializeMap as _,
};
use std::{collections::BTreeMap, fmt, marker::PhantomData, str::FromStr};

/// The key of the value that holds in all other hours.
const ELSE: &str = "else";

/// One value for all hours, or one for some hours and another for the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ByHour<T> {
    /// Values of some hours. Where hours overlap, the lowest value holds.
    windows: Vec<(Hours, T)>,
    /// The value in all other hours.
    other: T,
}

impl<T: Copy + Ord> ByHour<T> {
    /// The same value at every hour.
    #[must_use]
    pub const fn always(value: T) -> Self {
        Self { windows: Vec::new(), other: value }
    }

    /// Does it depend on the hour?
    #[must_use]
    pub fn depends_on_hour(&self) -> bool {
        !self.windows.is_empty()
    }

    /// The value at a local time; the lowest of all where the local time isn't known.
    #[must_use]
    pub fn at(&self, local: Option<DateTime>) -> T {
        let Some(local) = local else { return self.lowest() };
        let values = self.windows.iter().filter(|(hours, _)| hours.contain(local));
        values.map(|(_, value)| *value).min().unwrap_or(self.other)
    }

    /// The lowest of all values.
    #[must_use]
    pub fn lowest(&self) -> T {
        self.windows.iter().map(|(_, value)| *value).fold(self.other, T::min)
    }
}

impl<T: Serialize> Serialize for ByHour<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.windows.is_empty() {
            return self.other.serialize(serializer);
        }
        let mut map = serializer.serialize_map(Some(self.windows.len() + 1))?;
        for (hours, value) in &self.windows {
            map.serialize_entry(hours, value)?;
        }
        map.serialize_entry(ELSE, &self.other)?;
        map.end()
    }
}

impl<'de, T> Deserialize<'de> for ByHour<T>
where
    T: FromStr<Err = String> + Copy + Ord + Deserialize<'de>,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Values(PhantomData))
    }
}

/// Reads one value, or a table of them.
struct Values<T>(PhantomData<T>);

impl<'de, T> Visitor<'de> for Values<T>
where
    T: FromStr<Err = String> + Copy + Ord + Deserialize<'de>,
{
    type Value = ByHour<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, a whole number, or a table of them by hours")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
        let value = text.parse().map_err(|why| E::custom(format!("`{text}`: {why}")))?;
        Ok(ByHour::always(value))
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Self::Value, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Self::Value, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<Self::Value, E> {
        Err(E::custom("a text or a whole number is wanted"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<Self::Value, A::Error> {
        Err(A::Error::custom("a text or a whole number is wanted"))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut windows, mut other) = (BTreeMap::new(), None);
        while let Some(key) = map.next_key::<String>()? {
            let value: T = map.next_value()?;
            if key == ELSE {
                other = Some(value);
                continue;
            }
            let hours: Hours =
                key.parse().map_err(|why| A::Error::custom(format!("`{key}`: {why}")))?;
            windows.insert(key, (hours, value));
        }
        let Some(other) = other else {
            return Err(A::Error::custom(
                "`else` is missing: the value in all other hours, as in `{ \"09:00-17:00\" = 25, else = 100 }`",
            ));
        };
        Ok(ByHour { windows: windows.into_values().collect(), other })
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{Limits, Percent, Rate},
        *,
    };
    use jiff::civil::date;

    fn cpu(text: &str) -> Result<ByHour<Percent>, String> {
        let limits: Result<Limits, _> = toml::from_str(&format!("cpu = {text}"));
        limits.map(|limits| limits.cpu.unwrap()).map_err(|error| error.message().to_owned())
    }

    fn percent(text: &str) -> Percent {
        text.parse().unwrap()
    }

    /// A time on Monday, 5 January 2026, or on a day of that week.
    fn at(day: i8, hour: i8) -> Option<DateTime> {
        Some(date(2026, 1, 4 + day).at(hour, 0, 0, 0))
    }

    #[test]
    fn a_value_by_the_hour_holds_in_its_hours_and_the_other_else() {
        let ratios = cpu("{ \"mon-fri 09:00-17:00\" = 25, else = 100 }").unwrap();
        assert!(ratios.depends_on_hour());
        for (local, ratio) in
            [(at(1, 9), "25"), (at(1, 16), "25"), (at(1, 17), "100"), (at(6, 12), "100")]
        {
            assert_eq!(ratios.at(local), percent(ratio), "{local:?}");
        }
        let always = cpu("50").unwrap();
        assert_eq!(always, ByHour::always(percent("50")));
        assert!(!always.depends_on_hour());
        assert_eq!(always.at(None), percent("50"));
    }

    #[test]
    fn the_lowest_value_holds_where_hours_overlap_and_where_the_time_is_not_known() {
        let text =
            "{ \"08:00-18:00\" = 40, \"12:00-14:00\" = \"10%\", \"13:00-20:00\" = 60, else = 90 }";
        let ratios = cpu(text).unwrap();
        let at = |hour| ratios.at(at(2, hour)).get();
        assert_eq!([9, 12, 13, 15, 19, 21].map(at), [40, 10, 10, 40, 60, 90]);
        assert_eq!(ratios.at(None), percent("10"));
        let low = cpu("{ \"08:00-18:00\" = 40, else = 5 }").unwrap();
        assert_eq!((low.at(None), low.lowest()), (percent("5"), percent("5")));
    }

    #[test]
    fn a_table_without_else_or_with_wrong_hours_is_refused_with_words() {
        for (text, wanted) in [
            ("{ \"09:00-17:00\" = 25 }", "`else` is missing"),
            ("{ \"9-17\" = 25, else = 100 }", "`9-17`: hours are wanted"),
            ("{ \"09:00-17:00\" = 0, else = 100 }", "1 to 100 percent are wanted"),
            ("{ \"09:00-17:00\" = 25, else = 0.5 }", "a text or a whole number is wanted"),
            ("0.5", "a text or a whole number is wanted"),
            ("[50]", "a text or a whole number is wanted"),
            ("true", "a text, a whole number, or a table of them by hours"),
        ] {
            let error = cpu(text).unwrap_err();
            assert!(error.contains(wanted), "{text}: {error}");
        }
    }

    #[test]
    fn it_is_written_as_it_is_given_and_read_again() {
        let text = "{ \"09:00-17:00\" = \"1MB/s\", else = \"20MB/s\" }";
        let limits: Limits = toml::from_str(&format!("download = {text}")).unwrap();
        let rates: &ByHour<Rate> = limits.download.as_ref().unwrap();
        assert_eq!(rates.lowest(), "1MB/s".parse().unwrap());
        let json = serde_json::to_string(&limits).unwrap();
        assert_eq!(json, r#"{"download":{"09:00-17:00":"1MB/s","else":"20MB/s"}}"#);
        assert_eq!(serde_json::from_str::<Limits>(&json).unwrap(), limits);
        assert_eq!(serde_json::to_string(&cpu("50").unwrap()).unwrap(), "\"50\"");
    }
}
