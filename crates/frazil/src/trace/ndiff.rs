//! Differences of texts in the layout of Python's `difflib.ndiff`: lines with the prefixes `- `, `+ ` and `  `, and lines with the prefix `? `
//! that mark the changes within similar lines.

use std::collections::HashMap;
use std::hash::Hash;

/// Minimum similarity of two different lines that are shown as one changed line.
const SIMILAR: f64 = 0.75;

/// Maximum number of lines of a change that are paired by similarity, because pairing takes cubic time.
const MAX_PAIRED: usize = 400;

/// Returns the difference between two texts, line by line, in the format of `difflib.ndiff`.
pub(super) fn ndiff(a: &str, b: &str) -> String {
    let (a, b): (Vec<&str>, Vec<&str>) = (a.lines().collect(), b.lines().collect());
    let mut out = Vec::new();
    for (tag, [a0, a1, b0, b1]) in opcodes(&a, &b) {
        match tag {
            Tag::Equal => out.extend(a[a0..a1].iter().map(|line| format!("  {line}"))),
            _ => replace(&a[a0..a1], &b[b0..b1], &mut out),
        }
    }
    out.join("\n")
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Tag {
    Equal,
    Replace,
    Delete,
    Insert,
}

/// Returns the edit operations that turn `a` into `b`, in order. The array `[a0, a1, b0, b1]` means that `a[a0..a1]` corresponds to `b[b0..b1]`.
fn opcodes<T: Eq + Hash>(a: &[T], b: &[T]) -> Vec<(Tag, [usize; 4])> {
    let (mut i, mut j) = (0, 0);
    let mut out = Vec::new();
    for (ai, bj, size) in matching_blocks(a, b).into_iter().chain([(a.len(), b.len(), 0)]) {
        let tag = match (i < ai, j < bj) {
            (true, true) => Some(Tag::Replace),
            (true, false) => Some(Tag::Delete),
            (false, true) => Some(Tag::Insert),
            (false, false) => None,
        };
        out.extend(tag.map(|tag| (tag, [i, ai, j, bj])));
        (i, j) = (ai + size, bj + size);
        if size > 0 {
            out.push((Tag::Equal, [ai, i, bj, j]));
        }
    }
    out
}

/// Returns the common runs of `a` and `b` in order, each as start in `a`, start in `b` and length. They are the longest run and, recursively, the longest runs
/// before and after it.
fn matching_blocks<T: Eq + Hash>(a: &[T], b: &[T]) -> Vec<(usize, usize, usize)> {
    let mut places: HashMap<&T, Vec<usize>> = HashMap::new();
    for (j, item) in b.iter().enumerate() {
        places.entry(item).or_default().push(j);
    }
    let mut pending = vec![[0, a.len(), 0, b.len()]];
    let mut blocks = Vec::new();
    while let Some([a0, a1, b0, b1]) = pending.pop() {
        let (i, j, size) = longest_match(a, &places, [a0, a1, b0, b1]);
        if size == 0 {
            continue;
        }
        blocks.push((i, j, size));
        pending.push([a0, i, b0, j]);
        pending.push([i + size, a1, j + size, b1]);
    }
    blocks.sort_unstable();
    // Adjacent blocks are merged.
    let mut merged: Vec<(usize, usize, usize)> = Vec::new();
    for (i, j, size) in blocks {
        match merged.last_mut() {
            Some(last) if last.0 + last.2 == i && last.1 + last.2 == j => last.2 += size,
            _ => merged.push((i, j, size)),
        }
    }
    merged
}

/// Returns the longest run of `a[a0..a1]` that also occurs in `b[b0..b1]`; of several the first in `a`, then in `b`.
fn longest_match<T: Eq + Hash>(
    a: &[T],
    places: &HashMap<&T, Vec<usize>>,
    [a0, a1, b0, b1]: [usize; 4],
) -> (usize, usize, usize) {
    let mut best = (a0, b0, 0);
    // Lengths of the runs that end at the previous item, by their end in `b`.
    let mut lengths: HashMap<usize, usize> = HashMap::new();
    for (i, item) in a.iter().enumerate().take(a1).skip(a0) {
        let mut next = HashMap::new();
        for &j in places
            .get(item)
            .into_iter()
            .flatten()
            .filter(|&&j| (b0..b1).contains(&j))
        {
            let length = 1 + j.checked_sub(1).and_then(|before| lengths.get(&before)).unwrap_or(&0);
            next.insert(j, length);
            if length > best.2 {
                best = (i + 1 - length, j + 1 - length, length);
            }
        }
        lengths = next;
    }
    best
}

/// Returns the similarity of two lines: twice the length of their common runs, divided by the sum of their lengths.
fn ratio(a: &[char], b: &[char]) -> f64 {
    let shared: usize = matching_blocks(a, b).iter().map(|block| block.2).sum();
    match a.len() + b.len() {
        0 => 1.0,
        len => 2.0 * shared as f64 / len as f64,
    }
}

/// Prints lines that were replaced: the most similar pair as a change, then recursively the lines before and after it.
fn replace(a: &[&str], b: &[&str], out: &mut Vec<String>) {
    enum Work {
        Ranges([usize; 4]),
        Pair(usize, usize),
    }
    let chars = |lines: &[&str]| {
        lines
            .iter()
            .map(|line| line.chars().collect())
            .collect::<Vec<Vec<char>>>()
    };
    let (of_a, of_b) = (chars(a), chars(b));
    let mut pending = vec![Work::Ranges([0, a.len(), 0, b.len()])];
    while let Some(work) = pending.pop() {
        let [a0, a1, b0, b1] = match work {
            Work::Ranges(ranges) => ranges,
            Work::Pair(i, j) => {
                change(a[i], b[j], &of_a[i], &of_b[j], out);
                continue;
            }
        };
        match most_similar(&of_a, &of_b, [a0, a1, b0, b1]) {
            Some((i, j)) => {
                pending.push(Work::Ranges([i + 1, a1, j + 1, b1]));
                pending.push(Work::Pair(i, j));
                pending.push(Work::Ranges([a0, i, b0, j]));
            }
            None => {
                let minus = a[a0..a1].iter().map(|line| format!("- {line}"));
                let plus = b[b0..b1].iter().map(|line| format!("+ {line}"));
                // The shorter range is printed first.
                match b1 - b0 < a1 - a0 && b0 < b1 {
                    true => out.extend(plus.chain(minus)),
                    false => out.extend(minus.chain(plus)),
                }
            }
        }
    }
}

/// Returns the most similar pair of lines, if any are similar. Equal lines are returned only if no different lines are similar.
fn most_similar(a: &[Vec<char>], b: &[Vec<char>], [a0, a1, b0, b1]: [usize; 4]) -> Option<(usize, usize)> {
    if a1 - a0 > MAX_PAIRED || b1 - b0 > MAX_PAIRED {
        return None;
    }
    let (mut best, mut found, mut equal) = (SIMILAR - 0.01, None, None);
    for (j, line_b) in b.iter().enumerate().take(b1).skip(b0) {
        for (i, line_a) in a.iter().enumerate().take(a1).skip(a0) {
            if line_a == line_b {
                equal = equal.or(Some((i, j)));
                continue;
            }
            let similar = ratio(line_a, line_b);
            if similar > best {
                (best, found) = (similar, Some((i, j)));
            }
        }
    }
    if best < SIMILAR { equal } else { found }
}

/// Prints both lines. Each is followed by a line of marks below the characters that the other line does not have.
fn change(a: &str, b: &str, of_a: &[char], of_b: &[char], out: &mut Vec<String>) {
    let (mut under_a, mut under_b) = (String::new(), String::new());
    for (tag, [a0, a1, b0, b1]) in opcodes(of_a, of_b) {
        let (mark_a, mark_b) = match tag {
            Tag::Equal => (' ', ' '),
            Tag::Replace => ('^', '^'),
            Tag::Delete => ('-', ' '),
            Tag::Insert => (' ', '+'),
        };
        under_a.extend(std::iter::repeat_n(mark_a, a1 - a0));
        under_b.extend(std::iter::repeat_n(mark_b, b1 - b0));
    }
    for (sign, line, under) in [('-', a, under_a), ('+', b, under_b)] {
        out.push(format!("{sign} {line}"));
        let under = under.trim_end();
        if !under.is_empty() {
            out.push(format!("? {under}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ndiff;

    /// The expected texts are those of Python's difflib.
    #[test]
    fn differences_are_laid_out_as_python_does() {
        let a = "one\n%result : Tensor = mul(%x)\nreturn (%15)\nlast";
        let b = "one\n%result.5 : Tensor = mul(%x)\n%18 : new\nreturn (%19)\nlast";
        let expected = "  one
- %result : Tensor = mul(%x)
+ %result.5 : Tensor = mul(%x)
?        ++
+ %18 : new
- return (%15)
?           ^
+ return (%19)
?           ^
  last";
        assert_eq!(ndiff(a, b), expected);
    }

    #[test]
    fn lines_that_are_not_similar_stand_apart() {
        assert_eq!(ndiff("abc\nx", "xyzw\nx"), "- abc\n+ xyzw\n  x");
        assert_eq!(ndiff("same", "same"), "  same");
        assert_eq!(ndiff("", "new"), "+ new");
    }
}
