//! What was read, and what became of it. Pure: the file system is given as functions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What is at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Nothing that can be read.
    Missing,
    /// A folder.
    Folder,
    /// A file with this hash.
    File([u8; 32]),
}

/// Absolute paths with their last known contents.
#[derive(Debug, Default)]
pub struct Inputs {
    known: BTreeMap<PathBuf, Input>,
}

#[derive(Debug)]
struct Input {
    content: Content,
    /// Where a link leads to, if the path is one.
    target: Option<PathBuf>,
}

impl Inputs {
    /// Keeps exactly these paths, and gives those that are new.
    pub fn replace(
        &mut self,
        paths: BTreeSet<PathBuf>,
        canonical: &dyn Fn(&Path) -> Option<PathBuf>,
    ) -> Vec<PathBuf> {
        self.known.retain(|path, _| paths.contains(path));
        let fresh = paths.into_iter().filter(|p| !self.known.contains_key(p));
        let fresh: Vec<PathBuf> = fresh.collect();
        for path in &fresh {
            let input = Input {
                content: Content::Missing,
                target: target(path, canonical),
            };
            self.known.insert(path.clone(), input);
        }
        fresh
    }

    /// Takes down the contents of these paths as known.
    pub fn read(&mut self, paths: &[PathBuf], content: &dyn Fn(&Path) -> Content) {
        for path in paths {
            if let Some(input) = self.known.get_mut(path) {
                input.content = content(path);
            }
        }
    }

    /// Looks up again where links lead to.
    pub fn resolve(&mut self, canonical: &dyn Fn(&Path) -> Option<PathBuf>) {
        for (path, input) in &mut self.known {
            input.target = target(path, canonical);
        }
    }

    /// The folders to watch: of every path the folder it is in, or the nearest one above that exists.
    pub fn folders(&self, exists: &dyn Fn(&Path) -> bool) -> BTreeSet<PathBuf> {
        let places = self.known.iter().flat_map(|(path, i)| places(path, i));
        places
            .filter_map(|place| place.ancestors().skip(1).find(|above| exists(above)))
            .map(Path::to_path_buf)
            .collect()
    }

    /// Whether something happened to a folder on the way to a path, or to a link, so that the folders to
    /// watch may be others.
    pub fn moved(&self, touched: &BTreeSet<PathBuf>) -> bool {
        touched.is_empty()
            || self.known.iter().any(|(path, input)| {
                let above = |t: &PathBuf| places(path, input).any(|p| p != t && p.starts_with(t));
                let link = |t: &PathBuf| input.target.is_some() && path == t;
                touched.iter().any(|t| above(t) || link(t))
            })
    }

    /// Whether a path that was touched, or may have been, has another content now; it is known from then on.
    pub fn changed(
        &mut self,
        touched: &BTreeSet<PathBuf>,
        content: &dyn Fn(&Path) -> Content,
    ) -> bool {
        let mut changed = false;
        for (path, input) in &mut self.known {
            let concerns = touched.is_empty()
                || places(path, input).any(|p| touched.iter().any(|t| p.starts_with(t)));
            if !concerns {
                continue;
            }
            let now = content(path);
            changed |= now != input.content;
            input.content = now;
        }
        changed
    }

    /// The number of paths that are files or not there.
    pub fn count(&self) -> usize {
        let inputs = self.known.values();
        inputs.filter(|i| i.content != Content::Folder).count()
    }
}

fn places<'a>(path: &'a Path, input: &'a Input) -> impl Iterator<Item = &'a Path> {
    std::iter::once(path).chain(input.target.as_deref())
}

fn target(path: &Path, canonical: &dyn Fn(&Path) -> Option<PathBuf>) -> Option<PathBuf> {
    canonical(path).filter(|target| target != path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(names: &[&str]) -> BTreeSet<PathBuf> {
        names.iter().map(PathBuf::from).collect()
    }

    fn same(path: &Path) -> Option<PathBuf> {
        Some(path.into())
    }

    fn inputs(names: &[&str]) -> Inputs {
        let mut inputs = Inputs::default();
        let fresh = inputs.replace(paths(names), &same);
        inputs.read(&fresh, &|_| Content::File([1; 32]));
        inputs
    }

    const OTHER: Content = Content::File([2; 32]);

    #[test]
    fn a_save_that_changes_nothing_is_no_change() {
        let mut inputs = inputs(&["/a/p.rlhf"]);
        let touched = paths(&["/a/p.rlhf"]);
        assert!(!inputs.changed(&touched, &|_| Content::File([1; 32])));
        assert!(inputs.changed(&touched, &|_| OTHER));
        assert!(!inputs.changed(&touched, &|_| OTHER), "it is known now");
    }

    #[test]
    fn files_beside_those_that_were_read_are_not_even_looked_at() {
        let mut inputs = inputs(&["/a/p.rlhf"]);
        let touched = paths(&["/a/.p.rlhf.swp", "/a/q.rlhf", "/a/p.rlhf~"]);
        assert!(!inputs.changed(&touched, &|path| panic!("{path:?} is read")));
    }

    #[test]
    fn a_folder_that_appears_concerns_what_is_in_it() {
        let mut inputs = inputs(&["/a/data/rows.jsonl", "/a/p.rlhf"]);
        let touched = paths(&["/a/data"]);
        let content = |path: &Path| match path.ends_with("rows.jsonl") {
            true => OTHER,
            false => panic!("{path:?} is read"),
        };
        assert!(inputs.moved(&touched));
        assert!(inputs.changed(&touched, &content));
        assert!(!inputs.moved(&paths(&["/a/p.rlhf"])));
    }

    #[test]
    fn missing_files_are_watched_from_the_nearest_folder_that_exists() {
        let inputs = inputs(&["/a/p.rlhf", "/a/data/deep/rows.jsonl", "/b/q.rlhf"]);
        let exists = |path: &Path| [Path::new("/a"), Path::new("/")].contains(&path);
        assert_eq!(inputs.folders(&exists), paths(&["/", "/a"]));
    }

    #[test]
    fn a_link_is_watched_where_it_is_and_where_it_leads() {
        let mut inputs = Inputs::default();
        let leads = |_: &Path| Some(PathBuf::from("/store/p.rlhf"));
        let fresh = inputs.replace(paths(&["/a/p.rlhf"]), &leads);
        inputs.read(&fresh, &|_| Content::File([1; 32]));
        assert_eq!(inputs.folders(&|_| true), paths(&["/a", "/store"]));
        assert!(inputs.changed(&paths(&["/store/p.rlhf"]), &|_| OTHER));
        assert!(inputs.moved(&paths(&["/a/p.rlhf"])));
    }

    #[test]
    fn lost_events_mean_that_anything_may_have_changed() {
        let mut inputs = inputs(&["/a/p.rlhf", "/b/q.rlhf"]);
        assert!(inputs.moved(&paths(&[])));
        assert!(inputs.changed(&paths(&[]), &|_| OTHER));
    }

    #[test]
    fn only_paths_that_were_not_there_are_new() {
        let mut inputs = inputs(&["/a/p.rlhf", "/a/old.rlhf"]);
        let fresh = inputs.replace(paths(&["/a/p.rlhf", "/a/new.rlhf"]), &same);
        assert_eq!(fresh, [PathBuf::from("/a/new.rlhf")]);
        assert_eq!(inputs.count(), 2);
        assert!(!inputs.changed(&paths(&["/a/old.rlhf"]), &|_| OTHER));
    }
}
