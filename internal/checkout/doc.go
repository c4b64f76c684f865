// Package checkout answers for which revision of a system is under test: what a
// folder with a git repository holds, how a revision is got and built in a
// worktree of its own, and which builds are kept.
//
// It refuses to know what is built, and how it is started.
//
// Its invariant: the user's folder and repository are only read. Revisions are
// checked out of a repository of our own in the user's cache folder, which
// borrows the objects of the user's; what is fetched goes there too. A build
// that is in use is never removed, and the cache has a bound.
package checkout
