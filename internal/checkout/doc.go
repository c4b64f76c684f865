// Package checkout provides the revision of a system under test: it reads the
// state of a git repository, checks out a revision into its own worktree and
// builds it there, and keeps a cache of builds.
//
// It does not know what is built, or how it is started.
//
// Its invariant: the user's folder and repository are only read. Revisions are
// checked out of a second repository in the user's cache folder, which uses the
// objects of the user's; what is fetched goes there too. A build that is in use
// is never removed, and the cache is limited.
package checkout
