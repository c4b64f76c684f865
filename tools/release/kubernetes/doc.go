// Package kubernetes checks the Kubernetes objects of packaging/kubernetes, and those that
// the tests of internal/fleet write, with Kubernetes's own types and rules. It
// contains only tests.
package kubernetes
