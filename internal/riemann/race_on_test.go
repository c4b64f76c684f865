//go:build race

package riemann

// raced: the race detector makes pools drop what they keep, at random.
const raced = true
