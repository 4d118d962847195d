//! Parsing of JSON that refuses objects with duplicate keys. (`serde_json` keeps the last one.)

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value as Json};
use std::fmt;

/// Reads JSON text.
///
/// # Errors
/// If `bytes` are not JSON, or an object has a duplicate key.
pub fn from_slice(bytes: &[u8]) -> Result<Json, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = Unique.deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

struct Unique;

impl<'de> DeserializeSeed<'de> for Unique {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Unique {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(Unique)? {
            array.push(item);
        }
        Ok(Json::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Json, A::Error> {
        let mut object = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            if object.contains_key(&key) {
                return Err(A::Error::custom(format!("the key `{key}` stands twice in one object")));
            }
            object.insert(key, members.next_value_seed(Unique)?);
        }
        Ok(Json::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::from_slice;

    #[test]
    fn keys_stand_once() {
        let text = br#"{"a": [1, -2, 2.5, true, null, "x"], "b": {"a": {}}}"#;
        assert_eq!(
            from_slice(text).unwrap(),
            serde_json::from_slice::<serde_json::Value>(text).unwrap()
        );
        for (text, key) in [(r#"{"a": 1, "a": 2}"#, "a"), (r#"[{"b": {"k": 1, "k": 1}}]"#, "k")] {
            let error = from_slice(text.as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with(&format!("the key `{key}` stands twice")), "{error}");
        }
        assert!(from_slice(b"{} {}").is_err());
    }
}
