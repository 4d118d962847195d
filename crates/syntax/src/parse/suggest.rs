//! Suggestions in messages ("did you mean"): the most similar of several names.

/// Maximum length of names that are compared, because comparison takes quadratic time; longer names are rarely typed by
/// hand.
const MAX_LENGTH: usize = 64;

/// Returns the candidate with the smallest edit distance to `name`, if that is small relative to its length.
pub(crate) fn nearest<T: AsRef<str>>(name: &str, candidates: impl IntoIterator<Item = T>) -> Option<T> {
    if name.len() > MAX_LENGTH {
        return None;
    }
    let limit = (name.len() / 3).clamp(1, 3);
    candidates
        .into_iter()
        .filter(|c| c.as_ref().len().abs_diff(name.len()) <= limit && c.as_ref() != name)
        .map(|c| (distance(name.as_bytes(), c.as_ref().as_bytes()), c))
        .filter(|(d, _)| *d <= limit)
        .min_by_key(|(d, _)| *d)
        .map(|(_, c)| c)
}

/// Returns the Levenshtein distance of two names.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = i;
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
        for (j, y) in b.iter().enumerate() {
            let substitute = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substitute.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn near_names_are_found() {
        assert_eq!(nearest("Tenser", ["Tensor", "Tuple"]), Some("Tensor"));
        assert_eq!(nearest("x.1", ["x.2", "self.weight"]), Some("x.2"));
        assert_eq!(nearest("completely", ["different"]), None);
    }
}
