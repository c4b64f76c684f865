//go:build !race

package riemann

const raced = false
