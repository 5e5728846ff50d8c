//! Two lists of lines and what tells them apart.

/// Lists longer than this are not matched line by line, which takes time and room by the product of their lengths.
const MATCHED_LINES: usize = 1_000;

/// Lines of a long difference that are shown.
const SHOWN_LINES: usize = 200;

/// `  ` before a line in both, `- ` before one that is missing, `+ ` before one too many.
pub fn difference(expected: &[String], got: &[String]) -> String {
    let head = expected.iter().zip(got).take_while(|(a, b)| a == b).count();
    let tail = expected[head..].iter().rev().zip(got[head..].iter().rev()).take_while(|(a, b)| a == b).count();
    let (left, right) = (&expected[head..expected.len() - tail], &got[head..got.len() - tail]);
    let mut lines: Vec<String> = expected[..head].iter().map(|line| format!("  {line}")).collect();
    if left.len() > MATCHED_LINES || right.len() > MATCHED_LINES {
        lines.extend(left.iter().map(|line| format!("- {line}")));
        lines.extend(right.iter().map(|line| format!("+ {line}")));
    } else {
        matched(left, right, &mut lines);
    }
    lines.extend(expected[expected.len() - tail..].iter().map(|line| format!("  {line}")));
    let hidden = lines.len().saturating_sub(SHOWN_LINES);
    if hidden > 0 {
        lines.truncate(SHOWN_LINES);
        lines.push(format!("… and {hidden} more lines"));
    }
    lines.join("\n")
}

/// By the longest common subsequence.
fn matched(left: &[String], right: &[String], lines: &mut Vec<String>) {
    let width = right.len() + 1;
    // common[i * width + j]: how many lines left[i..] and right[j..] have in common, in order.
    let mut common = vec![0u32; (left.len() + 1) * width];
    for i in (0..left.len()).rev() {
        for j in (0..right.len()).rev() {
            common[i * width + j] = if left[i] == right[j] {
                common[(i + 1) * width + j + 1] + 1
            } else {
                common[(i + 1) * width + j].max(common[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < left.len() || j < right.len() {
        if i < left.len() && j < right.len() && left[i] == right[j] {
            lines.push(format!("  {}", left[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == right.len() || (i < left.len() && common[(i + 1) * width + j] >= common[i * width + j + 1]) {
            lines.push(format!("- {}", left[i]));
            i += 1;
        } else {
            lines.push(format!("+ {}", right[j]));
            j += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expected: &str, got: &str, difference_: &str) {
        let lines = |text: &str| text.chars().map(String::from).collect::<Vec<_>>();
        let shown = difference(&lines(expected), &lines(got));
        assert_eq!(shown.lines().collect::<Vec<_>>().join(","), difference_);
    }

    #[test]
    fn missing_and_surplus_lines_stand_where_they_belong() {
        check("abc", "abc", "  a,  b,  c");
        check("abc", "adc", "  a,- b,+ d,  c");
        check("abc", "bcd", "- a,  b,  c,+ d");
        check("", "a", "+ a");
        check("ab", "", "- a,- b");
    }
}
