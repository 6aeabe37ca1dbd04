use super::*;

fn part(number: usize) -> Part {
    Part::text(number.to_string())
}

fn numbers(parts: &Parts) -> Vec<usize> {
    parts.iter().map(|part| part.as_text().unwrap().parse().unwrap()).collect()
}

/// How much work the step from one version to the next was: handles copied, and parts written into new runs.
fn work(before: &Parts, after: &Parts) -> usize {
    let kept = |run: &&Arc<[Part]>| before.runs.iter().any(|known| Arc::ptr_eq(known, run));
    let written: usize = after.runs.iter().filter(|run| !kept(run)).map(|run| run.len()).sum();
    before.runs.len() + written
}

#[test]
fn parts_come_in_the_order_in_which_they_were_pushed_and_a_clone_is_left_alone() {
    let mut parts = Parts::default();
    assert!(parts.is_empty());
    let mut versions = Vec::new();
    for number in 0..3_000 {
        versions.push(parts.clone());
        parts.push(part(number));
    }
    assert_eq!(parts.len(), 3_000);
    assert_eq!(numbers(&parts), (0..3_000).collect::<Vec<_>>());
    for (length, version) in versions.iter().enumerate().step_by(97) {
        assert_eq!(numbers(version), (0..length).collect::<Vec<_>>());
    }
}

#[test]
fn the_cost_of_a_push_does_not_grow_with_the_log() {
    let mut parts = Parts::default();
    let costs: Vec<usize> = (0..10_000)
        .map(|number| {
            let before = parts.clone();
            parts.push(part(number));
            work(&before, &parts)
        })
        .collect();
    let mean = |costs: &[usize]| costs.iter().sum::<usize>() / costs.len();
    let (first, last, all) = (mean(&costs[..100]), mean(&costs[9_900..]), mean(&costs));
    assert!(
        first <= 12 && all <= 3 * first && last <= 5 * first,
        "{first} at the start, {all} at all, {last} at the end"
    );
    let most = costs.iter().max().unwrap();
    assert!(*most <= 2 * LONGEST_RUN, "{most} parts in one push");
}

#[test]
fn parts_appended_in_pieces_of_any_size_are_those_appended_one_by_one() {
    for sizes in [&[1, 1, 1][..], &[3, 5, 1, 1024, 2, 2000, 1], &[0, 0, 7], &[600, 600, 1, 1], &[1024, 1024, 1024]] {
        let (mut pieces, mut next) = (Parts::default(), 0);
        for size in sizes {
            pieces.extend(&Parts::from((next..next + size).map(part).collect::<Vec<_>>()));
            next += size;
        }
        assert_eq!(numbers(&pieces), (0..next).collect::<Vec<_>>());
        assert_eq!(pieces, Parts::from((0..next).map(part).collect::<Vec<_>>()));
        assert_eq!(pieces.is_empty(), next == 0);
    }
    assert_ne!(Parts::from(vec![part(1)]), Parts::default());
}
