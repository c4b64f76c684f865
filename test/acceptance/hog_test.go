//go:build conformance

package acceptance
